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
from trainmaster.orchestrator.core.champions.registration import ModelUpload, ModelVersion
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.completion.experiment import ExperimentRun
from trainmaster.orchestrator.core.completion.explanation import LogEntry, LogQuery
from trainmaster.orchestrator.core.completion.machine_metrics import MetricQuery, MetricSeries
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.events.envelope import Envelope
from trainmaster.orchestrator.core.job_names import JobKind, location_name
from trainmaster.orchestrator.core.names import RUN_LABEL, UPLOAD_ID
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.policy.pools import PoolState
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
from trainmaster.orchestrator.flows.services import Adapters, FlowResult, Services
from trainmaster.orchestrator.flows.turns import Turns
from trainmaster.orchestrator.ports.objects import Listed, Objects, Stored, Unfinished
from trainmaster.orchestrator.ports.services import (
    JobLogs,
    MachineMetrics,
    ModelRegistry,
    Notices,
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


@dataclass
class BoundaryObjects:
    inner: Objects
    boundary: Boundary

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        return self.boundary.cross(
            f"read {bucket}", lambda: self.inner.read(bucket, name, generation, max_bytes=max_bytes)
        )

    def describe(self, bucket: str, name: str, generation: int | None = None) -> Listed:
        return self.boundary.cross(
            f"describe {bucket}", lambda: self.inner.describe(bucket, name, generation)
        )

    def write(self, bucket: str, name: str, content: bytes, **options: Any) -> int:  # Any: the port's
        return self.boundary.cross(
            f"write {name.partition('/')[0]}", lambda: self.inner.write(bucket, name, content, **options)
        )

    def copy(
        self, source: tuple[str, str, int], bucket: str, name: str, *, token: str | None = None
    ) -> Listed | Unfinished:
        return self.boundary.cross(
            f"copy to {bucket}", lambda: self.inner.copy(source, bucket, name, token=token)
        )

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        self.boundary.cross(
            f"delete {name.partition('/')[0]}",
            lambda: self.inner.delete(bucket, name, if_generation=if_generation),
        )

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        return self.boundary.cross(
            f"list {bucket}", lambda: iter(list(self.inner.listing(bucket, prefix, after)))
        )


@dataclass
class BoundaryJobs:
    inner: TrainingJobs
    boundary: Boundary

    def submit(self, submission: Submission) -> Job:
        return self.boundary.cross("submit", lambda: self.inner.submit(submission))

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return self.boundary.cross("find jobs", lambda: self.inner.of_run(run_id, kind, regions))

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:
        return self.boundary.cross("list jobs", lambda: self.inner.active(kind, region))

    def read(self, job_name: str) -> Job:
        return self.boundary.cross("read job", lambda: self.inner.read(job_name))

    def pool_states(self, region: str) -> Sequence[PoolState]:
        return self.boundary.cross("read pools", lambda: self.inner.pool_states(region))

    def keep_experiment_run(self, run: ExperimentRun) -> None:
        self.boundary.cross("write experiment", lambda: self.inner.keep_experiment_run(run))

    def delete_pool(self, name: str) -> None:
        self.boundary.cross("delete pool", lambda: self.inner.delete_pool(name))

    def cancel(self, job_name: str) -> None:
        self.boundary.cross("cancel", lambda: self.inner.cancel(job_name))

    def with_id(self, job_id: str) -> Job:
        return self.boundary.cross("read job", lambda: self.inner.with_id(job_id))


@dataclass
class BoundaryJobLogs:
    inner: JobLogs
    boundary: Boundary

    def read(self, query: LogQuery) -> Sequence[LogEntry]:
        return self.boundary.cross("read log", lambda: self.inner.read(query))

    def silent_jobs(self, job_ids: Sequence[str], since: datetime) -> Sequence[str]:
        return self.boundary.cross("find silent jobs", lambda: self.inner.silent_jobs(job_ids, since))


@dataclass
class BoundaryMachineMetrics:
    inner: MachineMetrics
    boundary: Boundary

    def list_time_series(self, query: MetricQuery) -> Sequence[MetricSeries]:
        return self.boundary.cross("list time series", lambda: self.inner.list_time_series(query))


@dataclass
class BoundaryModels:
    inner: ModelRegistry
    boundary: Boundary

    def versions_of_run(self, model_id: str, run_id: str) -> Sequence[ModelVersion] | None:
        return self.boundary.cross("find versions", lambda: self.inner.versions_of_run(model_id, run_id))

    def upload(self, upload: ModelUpload, *, is_first: bool) -> str | None:
        return self.boundary.cross("upload", lambda: self.inner.upload(upload, is_first=is_first))

    def why_upload_failed(self, operation: str) -> str:
        return self.boundary.cross("check upload", lambda: self.inner.why_upload_failed(operation))

    def version_with_alias(self, model_id: str, alias: str) -> ModelVersion | None:
        return self.boundary.cross("find alias", lambda: self.inner.version_with_alias(model_id, alias))

    def change_alias(self, version: ModelVersion, change: str) -> None:
        self.boundary.cross("move alias", lambda: self.inner.change_alias(version, change))


@dataclass
class BoundaryNotices:
    inner: Notices
    boundary: Boundary

    def publish(self, notice: Notice) -> None:
        self.boundary.cross("publish", lambda: self.inner.publish(notice))


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
        objects = BoundaryObjects(self.objects, crossed)
        adapters = Adapters(
            objects=objects,
            jobs=BoundaryJobs(jobs or self.jobs, crossed),
            job_logs=BoundaryJobLogs(self.job_logs, crossed),
            model_registry=BoundaryModels(self.models, crossed),
            machine_metrics=BoundaryMachineMetrics(self.machine_metrics, crossed),
            notices=BoundaryNotices(self.notices, crossed),
            clock=self.clock,
        )
        return Services(
            adapters,
            target=SETTINGS.target,
            buckets=SETTINGS.buckets,
            lease=SETTINGS.lease,
            timeout=SETTINGS.function_timeout,
            attempt=f"attempt-{next(self._attempts)}",
            request_rules=lambda: self.request_rules,
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
