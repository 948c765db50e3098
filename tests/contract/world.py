"""A whole deployment in memory: the flows with their ports, a manual clock, and crashes at named calls."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from tests.core.shipped import schema
from tests.memory import (
    ManualClock,
    MemoryJobLogs,
    MemoryJobs,
    MemoryMachineMetrics,
    MemoryModels,
    MemoryNotices,
    MemoryObjects,
)
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.core.admission.cost import ReadPrices
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.job_names import JobKind, location_name
from trainmaster.orchestrator.core.names import RUN_LABEL, UPLOAD_ID
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument, parse_message, parse_upload
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA
from trainmaster.orchestrator.core.runs.job import Job, JobState, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.flows.intake import take
from trainmaster.orchestrator.flows.process_memory import HintReads
from trainmaster.orchestrator.flows.queue_pass import complete_and_admit
from trainmaster.orchestrator.flows.reconcile import reconcile
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.turns import Turns
from trainmaster.orchestrator.ports.services import (
    TrainingJobs,
)
from trainmaster.orchestrator.settings import settings_from
from trainmaster.orchestrator.stores.ledger import Ledger

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
PROJECT, REGION = "my-project", "us-central1"
ELSEWHERE = "europe-west4"
INBOX, LEDGER, MODELS, CHAMPIONS = "inbox", "ledger", "models", "champions"
SETTINGS = settings_from(
    {
        "GOOGLE_CLOUD_PROJECT": PROJECT,
        "TRAINMASTER_REGION": REGION,
        "TRAINMASTER_INBOX_BUCKET": INBOX,
        "TRAINMASTER_LEDGER_BUCKET": LEDGER,
        "TRAINMASTER_MODELS_BUCKET": MODELS,
        "TRAINMASTER_CHAMPIONS_BUCKET": CHAMPIONS,
        "TRAINMASTER_NOTICES_TOPIC": "notices",
        "TRAINMASTER_FUNCTION_TIMEOUT_S": "120",
    }
)
LEASE = SETTINGS.lease
NAMES = SETTINGS.names
REQUEST = (ROOT / "examples" / "cassava.yaml").read_bytes()
OBJECT = "requests/cassava.yaml"

_Answer = TypeVar("_Answer")


def shipped_request_rules() -> RequestRules:
    """The policy and schemas as they are deployed."""
    read = parse_document((ROOT / "functions" / "policy.yaml").read_bytes(), as_json=False)
    assert not read.faults
    return RequestRules(
        schemas={name: schema(name) for name in ("training_request.v1", RULE_SCHEMA, ORDER_SCHEMA)},
        policy=policy_from(read.value, NAMES),
        region=REGION,
        today=START.date(),
        names=NAMES,
    )


def request_rules_with(**changes: Any) -> RequestRules:
    """The shipped request rules, the policy changed so, and allowing a second region."""
    shipped = shipped_request_rules()
    return replace(
        shipped, policy=replace(present(shipped.policy), **{"regions": (REGION, ELSEWHERE), **changes})
    )


REQUEST_RULES = request_rules_with(regions=(REGION,), admission=Admission())
"""As shipped, but without limits and caps; their tests set them."""
EXPORT_SCHEMA = schema("model_export.v1")


class Killed(BaseException):
    """The process crashes here: no handler below the entry point may catch it."""


@dataclass
class Boundary:
    """Every call that leaves the process, in order; the process can be made to crash at one of them.

    `death` makes the exception raised there: by default a crash; or a service's failure, which the process survives.
    """

    die_at: int | None = None
    die_after_the_call: bool = False
    death: Callable[[str], BaseException] = Killed
    calls: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        with self._lock:
            number = len(self.calls)
            self.calls.append(name)
        if number == self.die_at and not self.die_after_the_call:
            raise self.death(f"before {name}")
        try:
            return call()
        finally:
            if number == self.die_at:
                raise self.death(f"after {name}")


def _of_bucket(verb: str) -> Callable[..., str]:
    return lambda bucket, *_: f"{verb} {bucket}"


def _of_folder(verb: str) -> Callable[..., str]:
    return lambda _, name, *__: f"{verb} {name.partition('/')[0]}"


OBJECT_CALLS: Mapping[str, str | Callable[..., str]] = {
    "read": _of_bucket("read"),
    "describe": _of_bucket("describe"),
    "listing": _of_bucket("list"),
    "copy": lambda _, bucket, *__: f"copy to {bucket}",
    "write": _of_folder("write"),
    "delete": _of_folder("delete"),
}
"""How calls of `Objects` are named, by method, of the call's arguments."""
JOB_CALLS: Mapping[str, str] = {
    "submit": "submit",
    "of_run": "find jobs",
    "active": "list jobs",
    "read": "read job",
    "cancel": "cancel",
    "pool_states": "read pools",
    "delete_pool": "delete pool",
    "keep_experiment_run": "write experiment",
}
LOG_CALLS: Mapping[str, str] = {"read": "read log", "silent_jobs": "find silent jobs"}
MODEL_CALLS: Mapping[str, str] = {
    "versions_of_run": "find versions",
    "upload": "upload",
    "why_upload_failed": "check upload",
    "version_with_alias": "find alias",
    "change_alias": "move alias",
}


class Crossing:
    """A port whose calls cross a boundary, by these names. Other methods than these do not exist."""

    def __init__(
        self,
        inner: object,
        boundary: Boundary,
        names: Mapping[str, str | Callable[..., str]] = OBJECT_CALLS,
    ) -> None:
        self._inner, self._boundary, self._names = inner, boundary, names

    def __getattr__(self, method: str) -> Callable[..., Any]:  # Any: the port's
        name, inner = self._names[method], getattr(self._inner, method)

        def call(*args: Any, **options: Any) -> Any:
            crossed = name if isinstance(name, str) else name(*args)
            return self._boundary.cross(crossed, lambda: _whole(inner(*args, **options)))

        return call


def _whole(answer: object) -> object:
    """The answer; of an iterator all that it gives, which it gets within the call."""
    return iter(list(answer)) if isinstance(answer, Iterator) else answer


class World:
    """The memory adapters, and events as the triggers would deliver them."""

    def __init__(self, request_rules: RequestRules = REQUEST_RULES, prices: ReadPrices | None = None) -> None:
        self.request_rules = request_rules
        self.prices = prices
        self.clock = ManualClock(START)
        self.objects = MemoryObjects(self.clock)
        self.jobs = MemoryJobs(self.clock, project=PROJECT)
        self.job_logs = MemoryJobLogs(self.clock)
        self.models = MemoryModels(self.clock)
        self.machine_metrics = MemoryMachineMetrics()
        self.notices = MemoryNotices()
        self.ledger = Ledger(self.objects, LEDGER)
        self.hint_reads = HintReads(self.clock)
        self._attempts = itertools.count(1)

    def copied(self) -> "World":
        """Another world in the same state, which is quicker than to repeat what led to it."""
        shared = (self.request_rules, self.prices, self._attempts)
        locks = (part._lock for part in (self.objects, self.jobs, self.hint_reads))
        return deepcopy(
            self, {**{id(one): threading.Lock() for one in locks}, **{id(one): one for one in shared}}
        )

    def services(self, boundary: Boundary | None = None, jobs: TrainingJobs | None = None) -> Services:
        """Ports for one delivery."""
        crossed = boundary or Boundary()
        return Services(
            objects=Crossing(self.objects, crossed),
            jobs=Crossing(jobs or self.jobs, crossed, JOB_CALLS),
            job_logs=Crossing(self.job_logs, crossed, LOG_CALLS),
            model_registry=Crossing(self.models, crossed, MODEL_CALLS),
            machine_metrics=Crossing(self.machine_metrics, crossed, {"list_time_series": "list time series"}),
            notices=Crossing(self.notices, crossed, {"publish": "publish"}),
            clock=self.clock,
            target=SETTINGS.target,
            buckets=SETTINGS.buckets,
            lease=SETTINGS.lease,
            timeout=SETTINGS.function_timeout,
            attempt=f"attempt-{next(self._attempts)}",
            request_rules=lambda: self.request_rules,
            policy=lambda: present(self.request_rules.policy),
            export_schema=lambda: EXPORT_SCHEMA,
            prices=self.prices,
            hint_reads=self.hint_reads,
        )

    def drop(
        self, content: bytes = REQUEST, name: str = OBJECT, *, upload_id: str | None = None, **sender: str
    ) -> IncomingDocument:
        """`upload_id`: of the call of `trainmaster submit` that uploads it; `sender`: further metadata, without `trainmaster-`."""
        metadata = {} if upload_id is None else {UPLOAD_ID: upload_id}
        metadata |= {f"trainmaster-{key}": value for key, value in sender.items()}
        generation = self.objects.write(INBOX, name, content, if_generation=None, metadata=metadata)
        found = self.objects.describe(INBOX, name, generation)
        known = {"crc32c": found.crc32c, "metadata": found.metadata}
        return self.uploaded(name, generation, len(content), found.created_at, known)

    def drop_and_launch(self, content: bytes = REQUEST, name: str = OBJECT) -> IncomingDocument:
        incoming = self.drop(content, name)
        self.launch(incoming)
        return incoming

    def uploaded(
        self,
        name: str,
        generation: int,
        size_bytes: int,
        created_at: datetime | None = None,
        known: Mapping[str, object] | None = None,
    ) -> IncomingDocument:
        """What came in by the event about that generation, which says this size and time; by default, now."""
        return instance_of(
            IncomingDocument,
            parse_upload(
                self.envelope(
                    {
                        "bucket": INBOX,
                        "name": name,
                        "generation": str(generation),
                        "size": str(size_bytes),
                        "timeCreated": (created_at or self.clock.now()).isoformat(),
                        **(known or {}),
                    }
                ),
                INBOX,
            ),
        )

    def published(self, message: Mapping[str, object]) -> IncomingDocument:
        return parse_message(self.envelope({"message": message}))

    def envelope(self, data: object) -> Envelope:
        now = self.clock.now()
        return Envelope(id="event-1", type="t", source="s", subject="", time=now, received_at=now, data=data)

    def launch(
        self, incoming: IncomingDocument, boundary: Boundary | None = None, jobs: TrainingJobs | None = None
    ) -> FlowResult:
        return take(self.services(boundary, jobs), incoming)

    def hint(self, job: Job, *, tells_end: bool = True, insert_id: str = "entry-1") -> JobHint:
        return JobHint(
            job_id=job.name.rpartition("/")[2], tells_end=tells_end, insert_id=insert_id, entry_time=START
        )

    def complete(self, hint: JobHint, boundary: Boundary | None = None) -> FlowResult:
        """Handle the log entry, and admit waiting runs if that freed quota. Returns the entry's result."""
        result, *_ = complete_and_admit(self.services(boundary), hint)
        return result

    def reconcile(
        self, boundary: Boundary | None = None, jobs: TrainingJobs | None = None
    ) -> list[FlowResult]:
        """A tick that looks at the active runs, without its rules."""
        services = self.services(boundary, jobs)
        turns = Turns(services)
        done = list(reconcile(services, turns, services.ledger.active()[0]))
        turns.end()
        return done

    def reconcile_after(self, pause: timedelta, jobs: TrainingJobs | None = None) -> list[FlowResult]:
        self.clock.advance(pause)
        return self.reconcile(jobs=jobs)

    def record(self, run_id: str) -> RunRecord:
        held = present(self.ledger.find(run_id))
        return held.record

    def document(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.objects.read(LEDGER, name, max_bytes=MIB).content)
        return found

    def active(self) -> list[str]:
        return [marker.run_id for marker in self.ledger.active()[0]]

    def train(self, record: RunRecord, accuracy: float = 0.75) -> Job:
        return self.train_job(self.jobs.read(present(record.job).name), accuracy)

    def score(self, job: Job, **scores: float) -> None:
        """Write what a job that scores models leaves: the accuracy of each."""
        name = job.output_uri.removeprefix(f"gs://{CHAMPIONS}/") + "/metrics.json"
        content = json.dumps({model: {"accuracy": value} for model, value in scores.items()}).encode()
        self.objects.write(CHAMPIONS, name, content, if_generation=None)

    def try_out(self, record: RunRecord, state: JobState, trials: Sequence[Trial]) -> Job:
        """End the tuning in that state, with a model in the directory of each succeeded trial."""
        assert record.job is not None
        for trial in trials:
            if trial.state is TrialState.SUCCEEDED:
                self.export(f"{record.output_uri}/{trial.id}")
        self.clock.advance(timedelta(seconds=60))
        self.jobs.become(record.job.name, JobState.RUNNING)
        self.clock.advance(timedelta(seconds=600))
        return self.jobs.become(record.job.name, state, trials=trials)

    def train_job(self, job: Job, accuracy: float = 0.75) -> Job:
        """Run the job to success, with a model of this accuracy in its directory."""
        self.export(job.output_uri, accuracy)
        self.clock.advance(timedelta(seconds=60))
        self.jobs.become(job.name, JobState.RUNNING)
        self.clock.advance(timedelta(seconds=600))
        return self.jobs.become(job.name, JobState.SUCCEEDED)

    def export(self, output_uri: str, accuracy: float = 0.75) -> None:
        """Write the model that a trainer exports, with that accuracy."""
        prefix = output_uri.removeprefix(f"gs://{MODELS}/") + "/model/"
        self.objects.write(MODELS, prefix + "saved_model.pb", b"graph", if_generation=None)
        content = json.dumps(export_manifest(f"gs://{MODELS}/{prefix}", accuracy)).encode()
        self.objects.write(MODELS, prefix + "export.json", content, if_generation=None)


def labelled(
    run_id: str, output_uri: str = "gs://elsewhere", labels: Mapping[str, str] | None = None
) -> Submission:
    """A custom job as any client may submit it, with the run's label and name."""
    return Submission(
        run_id=run_id,
        parent=location_name(PROJECT, REGION),
        kind=JobKind.CUSTOM,
        body={
            "displayName": run_id,
            "labels": {RUN_LABEL: run_id, **(labels or {})},
            "jobSpec": {"baseOutputDirectory": {"outputUriPrefix": output_uri}},
        },
    )


def export_manifest(model_uri: str, accuracy: float = 0.75) -> dict[str, Any]:
    return {
        "schema": "model_export.v1",
        "model_uri": model_uri,
        "created_at": "2026-03-01T12:10:00Z",
        "files": [{"path": "saved_model.pb", "size_bytes": 5, "sha256": "0" * 64}],
        "metrics": {"accuracy": accuracy, "loss": 1},
        "dataset": {"name": "cassava", "version": "0.1.0", "train_split": "train", "evaluation_split": None},
        "frameworks": {"tensorflow": "2.21.0"},
        "training": {
            "epochs": 2,
            "global_batch_size": 128,
            "replicas_in_sync": 2,
            "strategy": "MultiWorkerMirroredStrategy",
        },
    }
