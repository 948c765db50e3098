"""The record of one run: the ledger's only object that attempts change by compare-and-set.

Its size is bounded, whatever its job, its log and its request contained.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from trainmaster.orchestrator.core.documents.codec import encoded, json_bytes
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.names import run_id_in_group
from trainmaster.orchestrator.core.runs.end import (
    CHALLENGER,
    EVALUATION,
    Completion,
    FollowUp,
    Model,
    Rejection,
    TuningResult,
)
from trainmaster.orchestrator.core.runs.job import Failure, Progress, RecordedJob, RetryOn
from trainmaster.orchestrator.core.runs.sender import Commit, Sender
from trainmaster.orchestrator.core.runs.states import ENDS, RunState
from trainmaster.orchestrator.core.runs.utilization import Utilization, WasteFound
from trainmaster.orchestrator.core.sizes import MAX_RECORD_BYTES

TRIES_KEPT = 50
REASON_MAX_CHARS = 200


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Why the run has no job yet, and when the next attempt is due."""

    reason: str
    attempts: int
    """How often all candidates have been tried."""
    not_before: datetime
    rate_limited: bool = False
    """The service asked for fewer requests: no run is submitted to that region before `not_before`."""
    limit: str | None = None
    """The full limit under which the run waits for a slot; no other run waits behind it."""
    lacks: str | None = None
    """What this deployment lacks: the class of the runs that wait behind each other for the same repair of it."""
    rests: bool = False
    """Its job was lost: until `not_before` it has no place in the queue, and no run waits behind it."""


@dataclass(frozen=True, kw_only=True)
class AdmissionState:
    """What the run holds under the policy's limits, and why it waits."""

    waiting: Waiting | None = None
    slots: tuple[str, ...] = ()
    """Slots held under limits: LIMIT/NUMBER@GENERATION, the generation being that of the slot's object."""
    refused_since: datetime | None = None
    """When the service first had no room for the run."""
    rate_limited_since: datetime | None = None
    """Since when the service has only asked for fewer requests."""


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Until `expires_at`, only the attempt named here may submit the run's job."""

    attempt: str
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class AbandonedJob:
    """A job that another one of the run follows. It no longer belongs to the run, and is a second job only if it is active."""

    job: str
    candidate: int
    reason: str
    at: datetime
    why: str = "no_capacity"
    """Before it ran, no_capacity or start_deadline; after its start, one of RetryOn."""
    cost: Decimal | None = None
    """What it cost, if it had started. None: nothing, or unknown."""

    @property
    def was_lost(self) -> bool:
        """Whether it had started, and the run was retried."""
        return self.why in set(RetryOn)


@dataclass(frozen=True, kw_only=True)
class GivingUp:
    """The run's job had not started by its deadline, so it is being cancelled, and the next candidate follows its end.

    It stays on record if the job starts nevertheless, and is kept: a cancellation may take effect late.
    """

    job: str
    since: datetime
    reason: str


@dataclass(frozen=True, kw_only=True)
class RefusedCandidate:
    """A candidate that had no room for the run, and why."""

    candidate: int
    text: str
    at: datetime
    outcome: str


@dataclass(frozen=True, kw_only=True)
class SubmissionState:
    """How far the submission of the run's job has got."""

    lease: Lease | None = None
    """Which attempt may submit the job, and until when."""
    candidate: int = 0
    """The number of the candidate that was submitted last, or that is submitted next."""
    tries: tuple[RefusedCandidate, ...] = ()
    """The last TRIES_KEPT candidates that had no room for the run, oldest first."""
    abandoned_jobs: tuple[AbandonedJob, ...] = ()
    """Jobs that another one followed, oldest first. Each one started another round."""
    giving_up: GivingUp | None = None
    """Recorded before the job is cancelled; no other job is submitted until that one has been read in an end state."""
    not_started_logged_at: datetime | None = None
    """When the log last named the job among those that do not start."""
    machines: Mapping[str, str] | None = None
    """The machine types that replace others of the request, since a job ran out of memory on these."""
    second_jobs: tuple[str, ...] = ()
    """Names of further jobs that were submitted for this run, and cancelled."""
    unanswered: int = 0
    """Consecutive submissions without a response."""
    second_job_check_at: datetime | None = None
    """When the reconciler looks once for the job of an attempt that lost its lease; also after an end without a job."""


def short_reason(reason: str) -> str:
    """The reason as records keep it, without the long links in the service's messages."""
    return cut(reason, REASON_MAX_CHARS)


RECORD_SCHEMA = "run_record.v2"


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """The runs of one request with a matrix. `id` is that of its event, and no run has it, unless all were refused."""

    id: str
    number: int
    """Of this run, from 1."""
    runs: int
    """How many there are."""

    @property
    def run_ids(self) -> tuple[str, ...]:
        """All of them, in the order of the combinations."""
        return tuple(run_id_in_group(self.id, number + 1) for number in range(self.runs))


@dataclass(frozen=True, kw_only=True)
class Source:
    """What started the run.

    An uploaded object (`uri`, `object_name`, `generation`), a message (`message_id`), or a rule. For a rule, `uri` and
    `generation` are those of its file, and `object_name` is None, because the drop's status is the rule's.
    """

    kind: str
    event_id: str
    event_time: datetime
    """When the object was created or the message published."""
    received_at: datetime
    """When the delivery that reserved the run was received."""
    uri: str | None = None
    object_name: str | None = None
    generation: int | None = None
    message_id: str | None = None
    idempotency_key: str | None = None
    content_id: str | None = None
    """The same for the same content, of a file or a message with a key: core/runs/same_request.py."""
    team: str | None = None
    """The team in whose folder or topic it arrived; None without teams. Never taken from a document."""
    rule_id: str | None = None
    firing: int | None = None
    """The number of the rule's firing."""
    condition: str | None = None
    """The kind of condition that was met."""
    template_uri: str | None = None
    """The file from which the rule took the request."""
    template_generation: int | None = None
    firing_values: Mapping[str, str] | None = None
    """The values of the firing's placeholders, for example `data.newest_uri`, whether the request uses them or not."""
    traceparent: str | None = None
    """The W3C trace context of the event."""
    sent_by: Sender | None = None
    commit: Commit | None = None
    group: RunGroup | None = None
    """None for the run of a request without a matrix."""
    forced: str | None = None
    """Why the command would have refused it: it was sent with --force."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a job costs per hour and at most. None where a price is unknown; `unknown` names those prices.

    If both amounts and `unknown` are given, only some candidates or machines of retries have a known price, and the others
    may cost more.
    """

    currency: str
    as_of: str | None = None
    """The date of the oldest row in the price table."""
    per_hour: Decimal | None = None
    at_most: Decimal | None = None
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Original:
    """The request as its user wrote it: schemas/submitted_request.v1.schema.json. Kept only to explain the run."""

    uri: str
    sha256: str
    """Hash of the whole object at `uri`."""
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
    model_uri: str | None = None
    """Where the program writes its model, if not to AIP_MODEL_DIR; `${trial}` in it stands for a trial's id."""
    estimate: Estimate | None = None
    pools: tuple[str, ...] | None = None
    """The persistent resources in its region that are tried before what the request asks for, without waiting."""

    __hash__ = object.__hash__  # so that what is parsed from one can be kept


@dataclass(frozen=True, kw_only=True)
class Step:
    """One state of the history, and when the run entered it: by the job's times for submitted and running."""

    state: RunState
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The run's single object in the ledger: schemas/run_record.v2.schema.json."""

    schema: str = RECORD_SCHEMA
    run_id: str
    state: RunState
    source: Source
    attempt: str
    """Random text that identifies the delivery that wrote the record last."""
    updated_at: datetime
    history: tuple[Step, ...]
    """Every state that the run entered, oldest first."""
    request: AcceptedRequest | None = None
    """None for a rejected run."""
    rejection: Rejection | None = None
    admission: AdmissionState = field(default_factory=AdmissionState)
    submission: SubmissionState = field(default_factory=SubmissionState)
    cancel_requested_at: datetime | None = None
    """When an order, or a rule that replaces the run, asked it to end; no other job follows."""
    cancel_requested_by: Sender | None = None
    job: RecordedJob | None = None
    progress: Progress | None = None
    """What the job had reached when the reconciler last saw it running. The final result replaces it."""
    model: Model | None = None
    tuning: TuningResult | None = None
    """None for a run without trials, and before the end."""
    failure: Failure | None = None
    wasteful: WasteFound | None = None
    """None for a run of which no tick found that it wastes its machines."""
    utilization: Utilization | None = None
    """What its last job used, once Cloud Monitoring has shown it."""
    completion: Completion | None = None
    """None before the end."""
    problems: tuple[str, ...] = ()
    """What a user should know, in plain words. No decision depends on these texts."""
    cleaned: Mapping[str, datetime] | None = None
    """When the policy's retention removed `checkpoints`, `models` (the output directory) and `runs`: what is then left of
    the record only keeps a late event from starting a second run."""

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def is_order(self) -> bool:
        """Whether this is the record of a refused order, which is not a run."""
        return self.rejection is not None and bool(self.rejection.of_order)

    @property
    def round(self) -> int:
        """How often the run returned to waiting from a job."""
        return len(self.submission.abandoned_jobs)

    @property
    def evaluation(self) -> FollowUp | None:
        return self.completion.evaluation if self.completion else None

    @property
    def follow_up_jobs(self) -> tuple[RecordedJob, ...]:
        """The jobs after the run's end whose result is still awaited."""
        completion = self.completion or Completion()
        jobs = (completion.evaluation, completion.smoke)
        return tuple(job.job for job in jobs if job is not None and job.job is not None and not job.is_over)

    @property
    def awaits_evaluation(self) -> bool:
        """Whether a job of the service has yet to score the run's model, as its request asks."""
        completion = self.completion or Completion()
        asked = self.request is not None and mapping_at(self.request.document, "champion", "evaluate")
        if not asked or self.state is not RunState.SUCCEEDED or self.model is None:
            return False
        failed = (completion.steps_failed or {}).get(EVALUATION)
        is_given_up = failed is not None and failed.next_at is None
        return not is_given_up and (self.evaluation is None or not self.evaluation.is_over)

    @property
    def model_name(self) -> str | None:
        return self.request.model_name if self.request else None

    @property
    def output_uri(self) -> str | None:
        return self.request.output_uri if self.request else None


def metrics_of(record: RunRecord) -> Mapping[str, float]:
    """The model's metrics; without a model, those that the job had written when it was last seen running."""
    if record.model is not None:
        return record.model.metrics
    return (record.progress.metrics if record.progress else None) or {}


def measured_metrics(record: RunRecord) -> Mapping[str, float]:
    """What the run's evaluation measured of its model, for only that decides; without one, the run's own metrics."""
    if record.evaluation is None:
        return metrics_of(record)
    return (record.evaluation.scores or {}).get(CHALLENGER, {})


PROBLEMS_MAX = 250
"""A rejected run's record has every fault that its report lists."""
TEXT_MAX_CHARS = 2000
KEPT = 20
"""Entries of each list that are kept if the record is too large."""
SHORT_MAX_CHARS = 500
LEFT_OUT = f"details were left out of this record: it would have more than {MAX_RECORD_BYTES} bytes"


def stored_form(record: RunRecord, document: object) -> tuple[RunRecord, bytes]:
    """The record and its content, of at most MAX_RECORD_BYTES: parts that nothing depends on are left out if need be.

    `document` is the encoded record, with what this release does not know.
    """
    texts = (*record.problems, record.failure.message if record.failure else "")
    if len(record.problems) > PROBLEMS_MAX or max(map(len, texts)) > TEXT_MAX_CHARS:
        record = _with_short_texts(record, PROBLEMS_MAX, TEXT_MAX_CHARS)
        document = encoded(record)
    content, smaller = json_bytes(document), _smaller(record)
    while len(content) > MAX_RECORD_BYTES and (less := next(smaller, None)) is not None:
        record, content = less, json_bytes(encoded(less))
    return record, content


def _smaller(record: RunRecord) -> Iterator[RunRecord]:
    """Records of which each leaves out more; the last has a bounded size beside its request."""
    record = _with_short_texts(record, KEPT, SHORT_MAX_CHARS)
    record = replace(record, problems=(*record.problems, LEFT_OUT))
    if record.rejection is not None:
        record = replace(record, rejection=replace(record.rejection, faults=None))
    yield record
    if record.tuning is not None:
        trials = [
            replace(trial, parameters={}, infeasible_reason=reason or None, failure=None)
            for trial in record.tuning.trials
            for reason in [cut(trial.infeasible_reason or "", SHORT_MAX_CHARS)]
        ]
        yield replace(record, tuning=replace(record.tuning, trials=tuple(trials)))
        record = replace(record, tuning=TuningResult(trials=(), best_trial=record.tuning.best_trial))
    yield record
    yield _bare(record)


def _bare(record: RunRecord) -> RunRecord:
    """The record with what decisions depend on, and little more."""
    completion = record.completion
    return replace(
        record,
        source=replace(record.source, firing_values=None, traceparent=None),
        submission=replace(record.submission, tries=record.submission.tries[-KEPT:]),
        progress=None,
        tuning=None,
        utilization=None,
        completion=None if completion is None else replace(completion, cost=None),
    )


def _with_short_texts(record: RunRecord, problems: int, chars: int) -> RunRecord:
    more, failure = len(record.problems) - problems, record.failure
    kept = tuple(cut(problem, chars) for problem in record.problems[:problems])
    return replace(
        record,
        problems=(*kept, f"and {more} more problems") if more > 0 else kept,
        failure=failure and replace(failure, message=cut(failure.message, chars)),
    )
