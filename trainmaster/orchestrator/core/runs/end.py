"""The end of a run: its model, its trials, and the steps that follow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from trainmaster.orchestrator.core.runs.job import BestTrial, RecordedJob, RecordedTrial

EVALUATION = "evaluation"
"""The step that scores the run's model, the field of `Completion` about it, and the value of its job's STEP_LABEL."""
CHALLENGER, CHAMPION = "challenger", "champion"
"""The models that it scores: inputs of its job, and its scores."""
CHAMPION_RUN = "champion_run"
"""The input that names the run of the champion that is scored; the program does not get it."""
SMOKE = "smoke"
"""The same of the job that tries out a champion's model before its version in the Model Registry gets the alias."""


@dataclass(frozen=True, kw_only=True)
class ModelData:
    """The data that the model was trained and evaluated on, if its manifest names it."""

    name: str
    version: str | None = None
    train_split: str | None = None
    evaluation_split: str | None = None


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The model's files, by reference: the record stays small however many there are."""

    count: int
    size_bytes: int
    has_more: bool | None = None
    """True if the directory has more files than a record may list; only the first are recorded."""
    listing_uri: str | None = None
    """The object that lists every file with its generation and checksum."""
    listing_sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Model:
    """What the chief left in its model directory."""

    uri: str
    format: str | None = None
    """For example `saved_model`; see core/completion/model.py."""
    manifest_uri: str | None = None
    manifest_sha256: str | None = None
    manifest_generation: int | None = None
    metrics_uri: str | None = None
    """The metrics.json that was read; None if there was none, or nothing in it counted."""
    metrics_generation: int | None = None
    dataset: ModelData | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    not_finite: Mapping[str, str] | None = None
    """The trainer's other metrics, by name: `nan`, `inf` or `-inf`."""
    files: ModelFiles | None = None
    deleted_at: datetime | None = None
    """Since when the policy's retention removes it; a part may still be there for some minutes."""


@dataclass(frozen=True, kw_only=True)
class TuningResult:
    """Every trial of a tuning job, by id, and the best of those that succeeded."""

    trials: tuple[RecordedTrial, ...]
    best_trial: BestTrial | None = None


@dataclass(frozen=True, kw_only=True)
class Rejection:
    """Where the report of a refused request is, its first faults, and the cap that refused it, if one did."""

    report_uri: str
    cap: str | None = None
    """The cap and its period: `runs_per_hour/2026-11-21T13`."""
    faults: tuple[Mapping[str, object], ...] | None = None
    """As in the report, with their places in the text."""
    of_order: bool | None = None
    """True if an order was refused, not a request."""


@dataclass(frozen=True, kw_only=True)
class EndReport:
    """What reported the job's end: a log entry, or the reconciler."""

    by: str
    insert_id: str | None = None
    entry_time: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ChampionVerdict:
    """Whether the run's model became champion, and the champion it was compared with."""

    promoted: bool
    reason: str
    compared_with: str | None = None
    approve_by: datetime | None = None
    """Until then the verdict waits for approval; None: it is final."""


@dataclass(frozen=True, kw_only=True)
class FollowUp:
    """A job of another account that a step submits after the run's end.

    Until `lease_until`, only `attempt` may submit it. It is over once it has `scores` or a `failure`.
    """

    attempt: str
    lease_until: datetime
    began_at: datetime
    inputs: Mapping[str, str]
    """What it was given, by name; what it scores does not change with a later champion."""
    output_uri: str
    job: RecordedJob | None = None
    cancelled: str | None = None
    """Why it must end; its job is cancelled until its state says that it has ended."""
    scores: Mapping[str, Mapping[str, float]] | None = None
    """Of each model that it scored, the finite numbers by name."""
    failure: str | None = None
    cost: Decimal | None = None

    @property
    def is_over(self) -> bool:
        return self.scores is not None or self.failure is not None


class RegistrationState(StrEnum):
    """How far the run's model is on its way into the Model Registry."""

    UPLOADING = "uploading"
    REGISTERED = "registered"
    FAILED = "failed"
    """The last attempt; `steps_failed` says when it is repeated."""


@dataclass(frozen=True, kw_only=True)
class Registration:
    """The run's version in the Model Registry. `model` is the model's full name, `alias` what the version was given.

    `operation` is the upload that is under way since `since`; None if another attempt began it. `smoke` is the outcome of
    the smoke test, for people.
    """

    state: RegistrationState
    model: str | None = None
    version: str | None = None
    alias: str | None = None
    operation: str | None = None
    since: datetime | None = None
    error: str | None = None
    smoke: str | None = None


@dataclass(frozen=True, kw_only=True)
class LongCopy:
    """An object of the champions bucket whose copy takes several calls, and the token that continues it."""

    name: str
    token: str


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What the run's jobs cost: the seconds in which their replicas ran, by the service's times, at the table's prices.

    `total` is of all jobs, the other amounts of the last one. `total` is None if a price or a time is unknown; `unknown`
    names it.
    """

    currency: str
    as_of: str | None = None
    """The date of the oldest row in the price table."""
    ran_s: float = 0.0
    """Seconds from the job's start to its end; of a tuning, the sum of its trials'."""
    total: Decimal | None = None
    roles: Mapping[str, Decimal] = field(default_factory=dict)
    """By role, all replicas together; without the roles whose price is unknown."""
    trials: Mapping[str, Decimal] | None = None
    """Of a tuning: by trial, those that ran; without an unknown price."""
    evaluation: Decimal | None = None
    """Of the jobs that scored the model and tried it out; None without one, or if it is unknown."""
    earlier_jobs: Decimal | None = None
    """Of the jobs before the last one that had started and whose cost is known; None without any."""
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class FailedStep:
    """A step after the end that has failed, and when it is repeated."""

    attempts: int
    error: str
    """Of the last attempt."""
    next_at: datetime | None = None
    """None: it was given up."""


@dataclass(frozen=True, kw_only=True)
class Completion:
    """What is known about the end, and which of the steps after it are done."""

    reported_by: EndReport | None = None
    durations_s: Mapping[str, float] | None = None
    """Seconds from request to job, in the queue, running, and in total; only those that are known."""
    cost: Cost | None = None
    """None if the run had no estimate, or no job that ended."""
    steps_done: tuple[str, ...] = ()
    """Names of the steps after the end that have finished."""
    steps_failed: Mapping[str, FailedStep] | None = None
    """Those that have failed and not finished since, by name."""
    evaluation: FollowUp | None = None
    """The job that scores the model, if the request asks for one."""
    champion: ChampionVerdict | None = None
    registration: Registration | None = None
    """None if the policy does not register this run's model."""
    smoke: FollowUp | None = None
    """The job that tries out the model of a champion, if the policy asks for one."""
    long_copy: LongCopy | None = None
    """Until the model is copied to the champions bucket; None if every file took one call so far."""
