"""A tuning job and its trials as the API shows them: every change is a new value, nothing is done here.

REQUESTED ──► ACTIVE ──► SUCCEEDED | INFEASIBLE
└──► STOPPING ──► SUCCEEDED | INFEASIBLE
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import ClassVar, Self

from google.cloud.aiplatform_v1.types import CustomJob, HyperparameterTuningJob

from emulators.jobs.cluster import Replica, replicas_of
from emulators.jobs.lifecycle import JobState
from emulators.jobs.resource import Job, Message, TrialPlace, copied, read_message
from emulators.tuning.metrics import Report
from emulators.tuning.space import Value, flag
from emulators.tuning.stopping import Point, Rule
from emulators.tuning.validation import faults_of

MIN_FAILED, MAX_FAILED_SHARE = 5, 0.5
"""With maxFailedTrialCount 0: so many failures, and more than this share of ended trials, end the job. Our choice."""

_BEST, _MINIMIZE = 2, 2
_OUTPUT_ONLY = (
    "name", "trials", "state", "create_time", "start_time", "end_time", "update_time", "error",
    "satisfies_pzs", "satisfies_pzi",
)  # fmt: skip


class TrialState(Enum):
    """The API's numbers."""

    REQUESTED = 1
    ACTIVE = 2
    STOPPING = 3
    SUCCEEDED = 4
    INFEASIBLE = 5


ENDED = frozenset({TrialState.SUCCEEDED.value, TrialState.INFEASIBLE.value})


@dataclass(frozen=True, kw_only=True)
class TuningJob(Job):
    """One tuning job at one moment, trials included."""

    kind: ClassVar[str] = "HyperparameterTuningJob"
    collection: ClassVar[str] = "hyperparameterTuningJobs"

    @property
    def replicas(self) -> tuple[Replica, ...]:
        """What one trial needs."""
        return replicas_of([pool.replica_count for pool in self.message.trial_job_spec.worker_pool_specs])

    @property
    def maximize(self) -> tuple[bool, ...]:
        """For each metric whether more is better; an unset goal maximises."""
        return tuple(metric.goal != _MINIMIZE for metric in self.message.study_spec.metrics)

    @property
    def running(self) -> list[Message]:
        """The trials that have not ended."""
        return [trial for trial in self.message.trials if trial.state not in ENDED]

    def with_trial(self, trial: Message) -> Self:
        """The job with a new trial, or with this trial as it is now."""
        message = copied(self.message)
        for known in message.trials:
            if known.id == trial.id:
                known.CopyFrom(trial)
                return replace(self, message=message)
        message.trials.add().CopyFrom(trial)
        return replace(self, message=message)

    def results_of(self, trial: Message) -> list[float] | None:
        """The final value of each metric of an ended trial; None when it is infeasible."""
        if trial.state != TrialState.SUCCEEDED.value:
            return None
        found = {metric.metric_id: metric.value for metric in trial.final_measurement.metrics}
        return [found[metric.metric_id] for metric in self.message.study_spec.metrics]


def parse_tuning_job(body: object, *, project: str, location: str, job_id: str, at: datetime) -> TuningJob:
    """The tuning job that `body` asks for.

    Raises:
        InvalidJobError: with every fault found.
    """
    empty = HyperparameterTuningJob.pb(HyperparameterTuningJob())
    message = read_message(body, empty, output_only=_OUTPUT_ONLY, faults_of=faults_of)
    message.state = JobState.PENDING.value
    message.create_time.FromDatetime(at)
    message.update_time.FromDatetime(at)
    message.name = f"projects/{project}/locations/{location}/{TuningJob.collection}/{job_id}"
    return TuningJob(project=project, location=location, job_id=job_id, message=message)


def new_trial(job: TuningJob, trial_id: str, values: Mapping[str, Value], *, custom_job_id: str) -> Message:
    """A REQUESTED trial. Whole numbers become floats: a protobuf Value knows no others."""
    trial = HyperparameterTuningJob.pb(HyperparameterTuningJob()).trials.add()
    trial.id, trial.state = trial_id, TrialState.REQUESTED.value
    trial.name = f"{job.parent}/studies/{job.job_id}/trials/{trial_id}"
    trial.custom_job = f"{job.parent}/customJobs/{custom_job_id}"
    for parameter_id, value in values.items():
        parameter = trial.parameters.add()
        parameter.parameter_id = parameter_id
        if isinstance(value, str):
            parameter.value.string_value = value
        else:
            parameter.value.number_value = value
    return trial


def values_of(job: TuningJob, trial: Message) -> dict[str, Value]:
    """The parameters of a trial, whole where they were whole."""
    kinds = dict(_kinds(job.message.study_spec.parameters))
    found: dict[str, Value] = {}
    for parameter in trial.parameters:
        value = getattr(parameter.value, parameter.value.WhichOneof("kind"))
        whole = kinds[parameter.parameter_id] == "integer_value_spec"
        found[parameter.parameter_id] = int(value) if whole else value
    return found


def _kinds(specs: Sequence[Message]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for spec in specs:
        found.append((spec.parameter_id, spec.WhichOneof("parameter_value_spec")))
        found += _kinds([child.parameter_spec for child in spec.conditional_parameter_specs])
    return found


def custom_job_of(job: TuningJob, trial: Message, *, metrics_dir: str, at: datetime) -> Job:
    """The job that runs a trial: every pool gets the parameters as flags after its own arguments."""
    message = CustomJob.pb(CustomJob())
    message.name, message.display_name = trial.custom_job, job.message.display_name
    message.job_spec.CopyFrom(job.message.trial_job_spec)
    flags = [flag(name, value) for name, value in values_of(job, trial).items()]
    for pool in message.job_spec.worker_pool_specs:
        if pool.WhichOneof("task") == "container_spec":
            pool.container_spec.args.extend(flags)
    message.state = JobState.PENDING.value
    message.create_time.FromDatetime(at)
    message.update_time.FromDatetime(at)
    place = TrialPlace(
        tuning_job_id=job.job_id,
        trial_id=trial.id,
        metrics_dir=metrics_dir,
        metric_tag=job.message.study_spec.metrics[0].metric_id,
    )
    job_id = trial.custom_job.rpartition("/")[2]
    return Job(project=job.project, location=job.location, job_id=job_id, message=message, trial=place)


def begun(trial: Message, at: datetime) -> Message:
    """The trial once its replicas run."""
    changed = copied(trial)
    changed.state = TrialState.ACTIVE.value
    changed.start_time.FromDatetime(at)
    return changed


def measured(trial: Message, reports: Sequence[Report]) -> Message:
    """The trial with the reports that it has not yet: the file forgets the oldest, the trial does not."""
    changed = copied(trial)
    seen = {_key(measurement) for measurement in trial.measurements}
    started = trial.start_time.ToDatetime(tzinfo=UTC).timestamp()
    for report in reports:
        elapsed = timedelta(seconds=max(0.0, report.at - started))
        if (report.step, elapsed, report.metric_id, report.value) not in seen:
            measurement = changed.measurements.add()
            measurement.step_count = report.step
            measurement.elapsed_duration.FromTimedelta(elapsed)
            metric = measurement.metrics.add()
            metric.metric_id, metric.value = report.metric_id, report.value
    return changed


def _key(measurement: Message) -> tuple[int, timedelta, str, float]:
    metric = measurement.metrics[0]
    return (
        measurement.step_count,
        measurement.elapsed_duration.ToTimedelta(),
        metric.metric_id,
        metric.value,
    )


def ended(job: TuningJob, trial: Message, *, at: datetime, failure: str) -> Message:
    """The trial at its end: SUCCEEDED with its final measurement, or INFEASIBLE with the reason.

    `failure` is why its job did not succeed; empty when it did, or when it was stopped early.
    """
    changed = copied(trial)
    changed.end_time.FromDatetime(at)
    missing: list[str] = []
    chosen: list[Message] = []
    for metric, maximize in zip(job.message.study_spec.metrics, job.maximize, strict=True):
        ours = [one for one in trial.measurements if one.metrics[0].metric_id == metric.metric_id]
        if not ours:
            missing.append(metric.metric_id)
        elif job.message.study_spec.measurement_selection_type == _BEST:
            chosen.append((max if maximize else min)(ours, key=lambda one: one.metrics[0].value))
        else:
            chosen.append(ours[-1])
    if chosen and not missing:
        changed.final_measurement.CopyFrom(chosen[0])
        for other in chosen[1:]:
            changed.final_measurement.metrics.add().CopyFrom(other.metrics[0])
    if failure or missing:
        changed.state = TrialState.INFEASIBLE.value
        changed.infeasible_reason = failure or _never_reported(trial, missing)
    else:
        changed.state = TrialState.SUCCEEDED.value
    return changed


def _never_reported(trial: Message, missing: Sequence[str]) -> str:
    found = sorted({one.metrics[0].metric_id for one in trial.measurements})
    return f"The trial ended without reporting the metric {', '.join(missing)!r}; it reported {found}."


def too_many_failed(job: TuningJob) -> bool:
    """Whether the job is to fail because of its infeasible trials."""
    over = [trial for trial in job.message.trials if trial.state in ENDED]
    failed = [trial for trial in over if trial.state == TrialState.INFEASIBLE.value]
    if limit := job.message.max_failed_trial_count:
        return len(failed) >= int(limit)
    first_failed: bool = len(failed) == len(over) > 0 and any(trial.id == "1" for trial in failed)
    return first_failed or (len(failed) >= MIN_FAILED and len(failed) > MAX_FAILED_SHARE * len(over))


def rule_of(study: Message) -> tuple[Rule, bool]:
    """The stopping rule, and whether it looks at elapsed time instead of steps."""
    match study.WhichOneof("automated_stopping_spec"):
        case "median_automated_stopping_spec":
            return Rule.MEDIAN, study.median_automated_stopping_spec.use_elapsed_duration
        case "decay_curve_stopping_spec":
            return Rule.DECAY_CURVE, study.decay_curve_stopping_spec.use_elapsed_duration
        case _:
            return Rule.NEVER, False


def curve_of(job: TuningJob, trial: Message, *, by_time: bool) -> list[Point]:
    """A trial's measurements of the first metric, more being better."""
    metric_id = job.message.study_spec.metrics[0].metric_id
    sign = 1 if job.maximize[0] else -1
    return [
        Point(
            x=one.elapsed_duration.ToTimedelta().total_seconds() if by_time else one.step_count,
            value=sign * one.metrics[0].value,
        )
        for one in trial.measurements
        if one.metrics[0].metric_id == metric_id
    ]
