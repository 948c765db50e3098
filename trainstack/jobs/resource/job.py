"""A custom job as the API defines it: parsed from JSON, validated, moved from state to state, shown as JSON."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, ClassVar, Self

from google.cloud.aiplatform_v1.types.custom_job import CustomJob, Scheduling
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError

from trainstack.errors import InvalidArgumentError
from trainstack.jobs.resource.machines import Message
from trainstack.jobs.resource.validation import Surroundings, faults_of


@dataclass(frozen=True, kw_only=True, order=True)
class JobReplica:
    """One machine of a job: `pool` and `index` both count from zero."""

    pool: int
    index: int

    @property
    def name(self) -> str:
        """The name in the service's logs and messages: `workerpool0-0`."""
        return f"workerpool{self.pool}-{self.index}"

    @property
    def is_chief(self) -> bool:
        """Whether its exit with 0 is the job's success."""
        return self.pool == 0 and self.index == 0


CHIEF = JobReplica(pool=0, index=0)


def replicas_of(counts: Sequence[int]) -> tuple[JobReplica, ...]:
    """Every replica of pools with these sizes, the chief first. A skipped pool has size 0."""
    return tuple(
        JobReplica(pool=pool, index=index) for pool, count in enumerate(counts) for index in range(count)
    )


class ResourceState(Enum):
    """The states of a custom job, with the API's numbers, and which may follow which.

        QUEUED ──► PENDING ──► RUNNING ──► SUCCEEDED | FAILED
          │           │           │
          └───────────┴───────────┴──► CANCELLING ──► CANCELLED | SUCCEEDED | FAILED

    A QUEUED job waits for capacity, a PENDING one has it, a RUNNING one has all replicas up. QUEUED and PENDING
    may also move straight to FAILED. Cancelling is best effort: a job may end by itself while it is being
    cancelled.

    Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service, read 2026-11.
    """

    QUEUED = 1
    PENDING = 2
    RUNNING = 3
    SUCCEEDED = 4
    FAILED = 5
    CANCELLING = 6
    CANCELLED = 7

    @property
    def api_name(self) -> str:
        return f"JOB_STATE_{self.name}"

    @property
    def is_terminal(self) -> bool:
        return self in _TERMINAL


_TERMINAL = frozenset({ResourceState.SUCCEEDED, ResourceState.FAILED, ResourceState.CANCELLED})

_NEXT = {
    ResourceState.QUEUED: {ResourceState.PENDING, ResourceState.FAILED, ResourceState.CANCELLING},
    ResourceState.PENDING: {ResourceState.RUNNING, ResourceState.FAILED, ResourceState.CANCELLING},
    ResourceState.RUNNING: {ResourceState.SUCCEEDED, ResourceState.FAILED, ResourceState.CANCELLING},
    ResourceState.CANCELLING: _TERMINAL,
}


def may_follow(before: ResourceState, after: ResourceState) -> bool:
    return after in _NEXT.get(before, ())


CANCELLED_CODE, USER_CODE, EXHAUSTED_CODE, INTERNAL_CODE = 1, 3, 8, 13
"""google.rpc codes: CANCELLED, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, INTERNAL."""

DEFAULT_TIMEOUT = timedelta(days=7)
DEFAULT_MAX_WAIT = timedelta(days=1)
"""For FLEX_START. Source: the comments of google.cloud.aiplatform.v1.Scheduling."""
_UNKNOWN_NAME = re.compile(r'has no field named "(?P<name>.*)" at "(\w+Request\.)?(?P<path>[^"]*)"')
_OUTPUT_ONLY = frozenset({
    "name", "trials", "state", "create_time", "start_time", "end_time", "update_time", "error",
    "web_access_uris", "satisfies_pzs", "satisfies_pzi",
})  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class TrialAssignment:
    """The trial of a tuning job that a job runs, and where its replicas report.

    Attributes:
        metrics_dir: a directory that survives the stack; each replica of the trial has one file in it.
        metric_tag: the value of CLOUD_ML_HP_METRIC_TAG.
    """

    tuning_job_id: str
    trial_id: str
    metrics_dir: str
    metric_tag: str


@dataclass(frozen=True, kw_only=True)
class VertexJob:
    """A snapshot of one custom job; a tuning job is one with another message type.

    Attributes:
        project: the number, as in the service's responses, whether the caller used the number or the id.
        message: the CustomJob; never changed in place.
        attempts: how many times a stack started its replicas and did not stop in order while they ran, for the limit on internal errors.
        announced: whether its terminal line is in the log.
        trial: set for the job of a tuning trial.
    """

    kind: ClassVar[str] = "CustomJob"
    collection: ClassVar[str] = "customJobs"
    resource: ClassVar[Any] = CustomJob
    faults_of: ClassVar[Callable[[Message, Surroundings], list[str]]] = staticmethod(faults_of)

    project: str
    location: str
    job_id: str
    message: Message
    attempts: int = 0
    announced: bool = False
    trial: TrialAssignment | None = None

    @classmethod
    def parse(
        cls,
        body: Message | Mapping[str, object],
        *,
        project: str,
        location: str,
        job_id: str,
        at: datetime,
        state: ResourceState = ResourceState.PENDING,
        here: Surroundings | None = None,
    ) -> Self:
        """The new job that `body` describes: the resource as a message, or as JSON.

        Output-only fields are dropped, as by the service.

        Raises:
            InvalidArgumentError: with every fault found.
        """
        message = cls.resource.pb(cls.resource())
        if isinstance(body, Mapping):
            parse_fields(body, message)
        else:
            message.CopyFrom(body)
        for field in message.DESCRIPTOR.fields:
            if field.name in _OUTPUT_ONLY:
                message.ClearField(field.name)
        if faults := cls.faults_of(message, here or Surroundings()):
            raise InvalidArgumentError(*faults)
        job = cls(project=project, location=location, job_id=job_id, message=message)
        message.name = job.name
        return job.begun(at, state)

    @property
    def parent(self) -> str:
        """`projects/NUMBER/locations/REGION`."""
        return f"projects/{self.project}/locations/{self.location}"

    @property
    def name(self) -> str:
        return f"{self.parent}/{self.collection}/{self.job_id}"

    @property
    def state(self) -> ResourceState:
        return ResourceState(self.message.state)

    @property
    def create_time(self) -> datetime:
        """When the job was accepted, in UTC."""
        created: datetime = self.message.create_time.ToDatetime(tzinfo=UTC)
        return created

    @property
    def spec(self) -> Message:
        """The CustomJobSpec: of the job, or of each trial."""
        return self.message.job_spec

    @property
    def copies(self) -> int:
        """How many times `spec` runs at once."""
        return 1

    @property
    def replicas(self) -> tuple[JobReplica, ...]:
        """Every replica that `spec` asks for, the chief first."""
        return replicas_of([pool.replica_count for pool in self.spec.worker_pool_specs])

    @property
    def timeout(self) -> timedelta:
        """The longest time it may be RUNNING."""
        asked: timedelta = self.spec.scheduling.timeout.ToTimedelta()
        return asked or DEFAULT_TIMEOUT

    @property
    def max_wait(self) -> timedelta | None:
        """The longest time it may wait for capacity; None for no limit. Only FLEX_START has one."""
        scheduling = self.spec.scheduling
        if scheduling.strategy != Scheduling.Strategy.FLEX_START:
            return None
        if not scheduling.HasField("max_wait_duration"):
            return DEFAULT_MAX_WAIT
        asked: timedelta = scheduling.max_wait_duration.ToTimedelta()
        return asked or None

    def in_state(self, state: ResourceState, *, at: datetime, code: int = 0, reason: str = "") -> Self:
        """The job in another state.

        Raises:
            ValueError: the service never moves a job that way.
        """
        if not may_follow(self.state, state):
            raise ValueError(f"job {self.job_id} cannot move from {self.state.name} to {state.name}")
        message = copy_of(self.message)
        message.state = state.value
        message.update_time.FromDatetime(at)
        if state is ResourceState.RUNNING:
            message.start_time.FromDatetime(at)
        if state.is_terminal:
            message.end_time.FromDatetime(at)
        if code:
            message.error.code, message.error.message = code, reason
        return replace(self, message=message)

    def begun(self, at: datetime, state: ResourceState = ResourceState.PENDING) -> Self:
        """The job as it is accepted."""
        message = copy_of(self.message)
        message.state = state.value
        message.create_time.FromDatetime(at)
        message.update_time.FromDatetime(at)
        return replace(self, message=message)

    def to_json(self, *, enums_as_integers: bool) -> dict[str, object]:
        """The job as the API answers it."""
        fields: dict[str, object] = MessageToDict(self.message, use_integers_for_enums=enums_as_integers)
        return fields


def new_job_id() -> str:
    """19 digits, like the service's ids."""
    return str(10**18 + secrets.randbelow(8 * 10**18))


def parse_fields(fields: Mapping[str, object], message: Message) -> None:
    """Read JSON into a message. Raises `InvalidArgumentError`, in the service's words."""
    try:
        ParseDict(fields, message)
    except ParseError as error:
        raise InvalidArgumentError(
            f"Invalid JSON payload received. {_as_the_service_says(str(error))}"
        ) from error


def copy_of(message: Message) -> Message:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _as_the_service_says(error: str) -> str:
    if match := _UNKNOWN_NAME.search(error):
        path = re.sub(r"(?<!^)([A-Z])", r"_\1", match["path"]).lower()
        return f"Unknown name {match['name']!r} at {path!r}: Cannot find field."
    return re.sub(r"\s+", " ", error).replace("google.cloud.aiplatform.v1.", "")
