"""The life of one run: its states, its record, and the moves between them.

              an event
                 │
        faulty ┌─┴─┐ sound
               ▼   ▼      no room           given up
        rejected  reserved ───────▶ waiting ────────┐
                   │  │  │  ◀┄┄┄┄┄┄┄┄ │ lease       │
       taken over, │  │  │            │ taken       ▼
     lease expired └▶─┘  ├────────────┼─────────▶ failed
                         ▼            │ refused
                     submitted ◀──────┘ job created, or found and adopted
                         │
                         ▼
                      running
                         │ the job's own state, read from the service
         ┌───────────────┼────────────────┬ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┄ ┐
         ▼               ▼                ▼                    ▼
     succeeded        failed          cancelled    expired, partially_succeeded
                                                   (the service's for other jobs)

- reserved: the record exists, its lease says who may submit and until when.
- waiting: there is no room; the queue is walked again when `not_before` has passed, or a run has ended.
- submitted goes back to waiting when its job ended for want of capacity before it ran, and only then: the job
  is given up, and the next rung of the ladder is due. Each time begins another round.
- Any state that has not ended may become an end at once: the job's end can be told before its
  submission was written down.
- A run without a job is cancelled at once by an order, or by a rule that replaces it.
- An end is final.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from trainmaster.orchestrator.core.names import same_job
from trainmaster.orchestrator.core.policy.admission import DEFAULT_PRIORITY
from trainmaster.orchestrator.core.runs.attempts import Estimated, GivenUp, Try, Waiting
from trainmaster.orchestrator.core.runs.trial import BestTrial, RecordedTrial, Trial


class RunState(StrEnum):
    RESERVED = "reserved"
    WAITING = "waiting"
    SUBMITTED = "submitted"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    PARTIALLY_SUCCEEDED = "partially_succeeded"
    REJECTED = "rejected"


ENDS = frozenset(
    {
        RunState.SUCCEEDED,
        RunState.FAILED,
        RunState.CANCELLED,
        RunState.EXPIRED,
        RunState.PARTIALLY_SUCCEEDED,
        RunState.REJECTED,
    }
)
_JOB_ENDS = ENDS - {RunState.REJECTED}
LEGAL_MOVES: Mapping[RunState, frozenset[RunState]] = {
    RunState.RESERVED: _JOB_ENDS | {RunState.WAITING, RunState.SUBMITTED, RunState.RUNNING},
    RunState.WAITING: _JOB_ENDS | {RunState.SUBMITTED, RunState.RUNNING},
    RunState.SUBMITTED: _JOB_ENDS | {RunState.RUNNING, RunState.WAITING},
    RunState.RUNNING: _JOB_ENDS,
    **{end: frozenset() for end in ENDS},
}
PROGRESS: Mapping[RunState, int] = {
    RunState.RESERVED: 0,
    RunState.WAITING: 1,
    RunState.SUBMITTED: 2,
    RunState.RUNNING: 3,
    **dict.fromkeys(ENDS, 4),
}
"""How far a run is; what is told of a run never goes back to a smaller number within one round."""


class JobState(StrEnum):
    """Vertex AI's JobState, without its prefix.

    Source: google.cloud.aiplatform.v1.JobState
    """

    UNSPECIFIED = "JOB_STATE_UNSPECIFIED"
    QUEUED = "JOB_STATE_QUEUED"
    PENDING = "JOB_STATE_PENDING"
    RUNNING = "JOB_STATE_RUNNING"
    SUCCEEDED = "JOB_STATE_SUCCEEDED"
    FAILED = "JOB_STATE_FAILED"
    CANCELLING = "JOB_STATE_CANCELLING"
    CANCELLED = "JOB_STATE_CANCELLED"
    PAUSED = "JOB_STATE_PAUSED"
    EXPIRED = "JOB_STATE_EXPIRED"
    UPDATING = "JOB_STATE_UPDATING"
    PARTIALLY_SUCCEEDED = "JOB_STATE_PARTIALLY_SUCCEEDED"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Why a run failed, in the service's words or ours. `code` is a google.rpc.Code or HTTP status, 0 for ours."""

    message: str
    code: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A Vertex AI job as its service describes it."""

    name: str
    state: JobState
    display_name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    output_uri: str = ""
    create_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None
    error: Problem | None = None
    trials: tuple[Trial, ...] = ()


@dataclass(frozen=True, kw_only=True)
class RecordedJob:
    """What the record keeps of the job."""

    name: str
    state: JobState
    create_time: datetime | None = None
    start_time: datetime | None = None
    end_time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Source:
    """What the run came from.

    An uploaded object (`uri`, `object_name`, `generation`), a message (`message_id`), or a rule: then `uri` and
    `generation` are those of the rule's file, and there is no `object_name`, for the run is not the file's own.
    """

    kind: str
    event_id: str
    event_time: datetime
    received_at: datetime
    uri: str | None = None
    object_name: str | None = None
    generation: int | None = None
    message_id: str | None = None
    idempotency_key: str | None = None
    rule_id: str | None = None
    firing: int | None = None
    condition: str | None = None
    template_uri: str | None = None
    template_generation: int | None = None


@dataclass(frozen=True, kw_only=True)
class Lease:
    """Until `expires_at`, only the attempt named here may submit the run's job."""

    attempt: str
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class ModelData:
    """The data that the model was trained and evaluated on, as its manifest says."""

    name: str
    version: str
    train_split: str
    evaluation_split: str | None = None


@dataclass(frozen=True, kw_only=True)
class Model:
    """The exported model. Without a manifest only its path is known.

    The manifest holds the hash of every file, so its own hash stands for the whole export.
    """

    uri: str
    manifest_uri: str | None = None
    manifest_sha256: str | None = None
    dataset: ModelData | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    files: int | None = None
    size_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Step:
    """One state of the history and when it was entered: by the job's own clock for submitted and running."""

    state: RunState
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Told:
    """Who told of the run's end: a log entry, or the sweep."""

    by: str
    insert_id: str | None = None
    entry_time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The run's one object in the ledger: schemas/run_record.v1.schema.json.

    `rung` is the step of the request's ladder that was submitted last, or is submitted next. `slots` are the
    places that the run holds under limits. `cap` is the cap, and its time, that refused the run.
    `refused_since`: when the service first had no room. `unanswered`: submissions in a row without an answer.
    `too_fast_since`: since when it was told only that. `cancel_asked_at`: when the run was to end; no other job
    follows. `second_look_at`: when a job of one who lost his lease is looked for; with no job, after the end too.
    """

    schema: str = "run_record.v1"
    run_id: str
    state: RunState
    source: Source
    attempt: str
    updated_at: datetime
    history: tuple[Step, ...]
    model_name: str | None = None
    request: Mapping[str, object] | None = None
    output_uri: str | None = None
    priority: int = DEFAULT_PRIORITY
    rung: int = 0
    estimate: Estimated | None = None
    lease: Lease | None = None
    waiting: Waiting | None = None
    slots: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()
    given_up: tuple[GivenUp, ...] = ()
    refused_since: datetime | None = None
    too_fast_since: datetime | None = None
    unanswered: int = 0
    cap: str | None = None
    cancel_asked_at: datetime | None = None
    second_look_at: datetime | None = None
    job: RecordedJob | None = None
    model: Model | None = None
    trials: tuple[RecordedTrial, ...] | None = None
    best_trial: BestTrial | None = None
    error: Problem | None = None
    problems: tuple[str, ...] = ()
    report_uri: str | None = None
    told: Told | None = None
    durations_s: Mapping[str, float] | None = None

    @property
    def ended(self) -> bool:
        return self.state in ENDS

    @property
    def round(self) -> int:
        """How often the run went back to waiting because its job found no capacity."""
        return len(self.given_up)

    def live_lease(self, now: datetime) -> Lease | None:
        """The lease that keeps everybody else from taking the run over; None: whoever comes may."""
        return self.lease if self.lease is not None and self.lease.expires_at > now else None

    def found_second(self, job_name: str) -> bool:
        """Whether that job was found to be a second one, and told of in `problems`."""
        found = second_job_found(job_name)
        # Before they told what became of it, records went on with a comma.
        before = f"{found.removesuffix(': ')}, "
        return any(problem.startswith((found, before)) for problem in self.problems)

    def gave_up(self, job_name: str) -> bool:
        return any(same_job(each.job, job_name) for each in self.given_up)


def second_job_found(job_name: str) -> str:
    """How the problem begins that tells of a second job."""
    return f"a second job was found, {job_name}: "


def moved(
    record: RunRecord, state: RunState, *, entered_at: datetime, now: datetime, attempt: str
) -> RunRecord:
    """The record in another state, its lease given up.

    Raises:
        ValueError: the move is not legal; the caller asked for it without looking.
    """
    if state not in LEGAL_MOVES[record.state]:
        raise ValueError(f"a run cannot go from {record.state} to {state}")
    return replace(
        record,
        state=state,
        attempt=attempt,
        updated_at=now,
        lease=None,
        waiting=record.waiting if state is RunState.WAITING else None,
        too_fast_since=record.too_fast_since if state is RunState.WAITING else None,
        second_look_at=None if state in ENDS and record.job is not None else record.second_look_at,
        history=(*record.history, Step(state=state, at=entered_at)),
    )


def taken_over(record: RunRecord, *, attempt: str, now: datetime, lease: timedelta) -> RunRecord:
    """The record with the lease in the hands of `attempt`; its state stays.

    Whoever held the lease before may only be stopped, and still submit: after this lease somebody looks for it.
    """
    until = now + lease
    held = Lease(attempt=attempt, expires_at=until)
    return replace(record, attempt=attempt, updated_at=now, lease=held, second_look_at=until)


def job_of_run(record: RunRecord, job: Job, run_label: str) -> bool:
    """Whether `job` is this run's: labelled with it, and either the one on record or of the shape we submit.

    A label alone proves nothing: whoever may create jobs can write any label. A job that was given up is its no
    more, and one that was found to be a second one never is.
    """
    if (
        job.labels.get(run_label) != record.run_id
        or record.gave_up(job.name)
        or record.found_second(job.name)
    ):
        return False
    if record.job is not None:
        return same_job(record.job.name, job.name)
    return job.display_name == record.run_id and job.output_uri == record.output_uri


def with_job(record: RunRecord, job: Job, *, now: datetime, attempt: str) -> RunRecord:
    """The record with what the service says of the job, and every step that its times prove.

    The steps' times are the job's, so that the record is the same in whatever order things were told.
    """
    recorded = RecordedJob(
        name=record.job.name if record.job else job.name,
        state=job.state,
        create_time=job.create_time,
        start_time=job.start_time,
        end_time=job.end_time,
    )
    known = replace(record, job=recorded, attempt=attempt, updated_at=now)
    for state, entered_at in ((RunState.SUBMITTED, job.create_time), (RunState.RUNNING, job.start_time)):
        if entered_at is not None and PROGRESS[state] > PROGRESS[known.state]:
            known = moved(known, state, entered_at=entered_at, now=now, attempt=attempt)
    if known.state in (RunState.RESERVED, RunState.WAITING):
        known = moved(known, RunState.SUBMITTED, entered_at=now, now=now, attempt=attempt)
    return known
