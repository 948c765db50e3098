"""The record of one run: the ledger's only object that attempts change by compare-and-set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from trainmaster.orchestrator.core.runs.attempts import AdmissionState, Lease, SubmissionState
from trainmaster.orchestrator.core.runs.job import Failure, RecordedJob
from trainmaster.orchestrator.core.runs.outcome import Completion, Model, Rejection, TuningResult
from trainmaster.orchestrator.core.runs.states import ENDS, RunState

RECORD_SCHEMA = "run_record.v2"


@dataclass(frozen=True, kw_only=True)
class Source:
    """What the run came from.

    An uploaded object (`uri`, `object_name`, `generation`), a message (`message_id`), or a rule: then `uri` and
    `generation` are those of the rule's file, and there is no `object_name`, for the run is not the file's own.
    """

    kind: str
    event_id: str
    event_time: datetime
    """When the object was created or the message published."""
    received_at: datetime
    """When the delivery that reserved the run came."""
    uri: str | None = None
    object_name: str | None = None
    generation: int | None = None
    message_id: str | None = None
    idempotency_key: str | None = None
    rule_id: str | None = None
    firing: int | None = None
    """Which firing of the rule."""
    condition: str | None = None
    """The kind of condition that was met."""
    template_uri: str | None = None
    """Where the rule took the request from."""
    template_generation: int | None = None
    traceparent: str | None = None
    """The W3C trace context of the event."""


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """What the run was estimated to cost, as decimals in text, by a table whose oldest price is of `as_of`.

    Of the dearest candidate whose prices are known; None where no candidate's are. `unknown` says which prices are not.
    """

    currency: str
    as_of: str | None = None
    per_hour: str | None = None
    at_most: str | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Original:
    """The request as its user wrote it: schemas/submitted_request.v1.schema.json. Kept only to explain the run."""

    uri: str
    sha256: str
    """Of the whole object at `uri`."""
    dialect: str


@dataclass(frozen=True, kw_only=True)
class AcceptedRequest:
    """The request of a run that was not rejected, and what was decided when it was accepted."""

    document: Mapping[str, object]
    """The canonical request: in our own dialect, with the model's name and the region resolved."""
    original: Original
    model_name: str
    output_uri: str
    """The job's baseOutputDirectory."""
    team: str | None = None
    estimate: Estimated | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One state of the history and when it was entered: by the job's own clock for submitted and running."""

    state: RunState
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The run's one object in the ledger: schemas/run_record.v2.schema.json."""

    schema: str = RECORD_SCHEMA
    run_id: str
    state: RunState
    source: Source
    attempt: str
    """Random text of the delivery that wrote the record last."""
    updated_at: datetime
    history: tuple[Step, ...]
    """Every state that was entered, oldest first."""
    request: AcceptedRequest | None = None
    """None for a rejected run."""
    rejection: Rejection | None = None
    admission: AdmissionState = field(default_factory=AdmissionState)
    submission: SubmissionState = field(default_factory=SubmissionState)
    cancel_requested_at: datetime | None = None
    """When an order, or a rule that replaces the run, wanted it to end; no other job follows."""
    job: RecordedJob | None = None
    model: Model | None = None
    tuning: TuningResult | None = None
    """None for a run without trials, and before its end."""
    failure: Failure | None = None
    completion: Completion | None = None
    """None before the end."""
    problems: tuple[str, ...] = ()
    """What a person should know, in plain words; nothing decides by these texts."""

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def round(self) -> int:
        """How often the run went back to waiting because its job found no capacity."""
        return len(self.submission.abandoned_jobs)

    @property
    def model_name(self) -> str | None:
        return self.request.model_name if self.request else None

    @property
    def output_uri(self) -> str | None:
        return self.request.output_uri if self.request else None

    def live_lease(self, now: datetime) -> Lease | None:
        """The lease that keeps other attempts from taking the run over; None: any attempt may."""
        lease = self.submission.lease
        return lease if lease is not None and lease.expires_at > now else None
