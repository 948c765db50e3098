"""A tuning job with its trials as the API shows them. Pure: every change is a new value."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, ClassVar, Self

from google.cloud.aiplatform_v1.types.custom_job import CustomJob
from google.cloud.aiplatform_v1.types.hyperparameter_tuning_job import HyperparameterTuningJob
from google.cloud.aiplatform_v1.types.study import Trial
from google.protobuf.json_format import MessageToDict

from trainstack.jobs.resource.job import TrialAssignment, VertexJob, copy_of
from trainstack.jobs.resource.machines import Message
from trainstack.jobs.resource.validation import Surroundings
from trainstack.tuning import measurements
from trainstack.tuning.measurements import Point, TrialMeasurement
from trainstack.tuning.validation import faults_of

Value = float | int | str
"""Of a parameter: a float for DOUBLE and DISCRETE, an int for INTEGER, text for CATEGORICAL."""

_BEST, _MINIMIZE = 2, 2


TuningTrialState = Trial.State
_ENDED = frozenset({TuningTrialState.SUCCEEDED, TuningTrialState.INFEASIBLE})


@dataclass(frozen=True)
class TuningTrial:
    """A snapshot of one trial. `message` is never changed in place.

    REQUESTED ──► ACTIVE ──► SUCCEEDED | INFEASIBLE
                    └──► STOPPING ──► SUCCEEDED | INFEASIBLE
    """

    message: Message

    @property
    def id(self) -> str:
        """`"1"` and up."""
        return str(self.message.id)

    @cached_property
    def state(self) -> TuningTrialState:
        return TuningTrialState(self.message.state)

    @property
    def has_ended(self) -> bool:
        return self.state in _ENDED

    @property
    def job_id(self) -> str:
        return str(self.message.custom_job.rpartition("/")[2])

    @cached_property
    def as_names(self) -> dict[str, object]:
        """The trial as JSON with enum names; cached, because ended trials are shown repeatedly."""
        return MessageToDict(self.message)  # type: ignore[no-any-return]

    @cached_property
    def as_integers(self) -> dict[str, object]:
        """The trial as JSON with enum numbers."""
        return MessageToDict(self.message, use_integers_for_enums=True)  # type: ignore[no-any-return]

    def of_metric(self, metric_id: str) -> list[TrialMeasurement]:
        return [one for one in measurements.read(self.message.measurements) if one.metric_id == metric_id]

    def curve(self, metric: Message, *, by_time: bool) -> list[Point]:
        """The measurements of a metric over steps, or over seconds; higher is better."""
        sign = -1 if metric.goal == _MINIMIZE else 1
        return [
            Point(x=one.elapsed.total_seconds() if by_time else one.step, value=sign * one.value)
            for one in self.of_metric(metric.metric_id)
        ]

    def begun(self, at: datetime) -> Self:
        return self._with_state(TuningTrialState.ACTIVE, start_time=at)

    def stopping(self) -> Self:
        return self._with_state(TuningTrialState.STOPPING)

    def with_reports(self, text: str) -> Self:
        """The trial with new reports from `text`, its metric file, or the same object without any."""
        known = measurements.read(self.message.measurements)
        started = self.message.start_time.ToDatetime(tzinfo=UTC)
        measured = measurements.merged_measurements(known, measurements.read_reports(text, started=started))
        if measured == known:
            return self
        changed = copy_of(self.message)
        measurements.write(changed, measured)
        return type(self)(changed)

    def with_end(self, study: Message, *, at: datetime, failure: str, text: str = "") -> Self:
        """The trial at its end: SUCCEEDED with its final measurement, or INFEASIBLE with the reason.

        `failure` is why the trial's job failed; empty if it succeeded or was stopped early. `text` is the metric file,
        which may show a metric that was never a finite number.
        """
        by_metric = {metric.metric_id: self.of_metric(metric.metric_id) for metric in study.metrics}
        missing = [metric_id for metric_id, values in by_metric.items() if not values]
        if failure or missing:
            changed = copy_of(self._with_state(TuningTrialState.INFEASIBLE, end_time=at).message)
            changed.infeasible_reason = failure or self._never_reported(missing, text)
            return type(self)(changed)
        changed = copy_of(self._with_state(TuningTrialState.SUCCEEDED, end_time=at).message)
        kept = study.measurement_selection_type
        final = [_final(by_metric[metric.metric_id], metric, kept) for metric in study.metrics]
        changed.final_measurement.step_count = final[0].step
        changed.final_measurement.elapsed_duration.FromTimedelta(final[0].elapsed)
        for one in final:
            metric = changed.final_measurement.metrics.add()
            metric.metric_id, metric.value = one.metric_id, one.value
        return type(self)(changed)

    def _never_reported(self, missing: Sequence[str], text: str) -> str:
        values = measurements.last_not_finite(text)
        for metric_id in missing:
            if metric_id in values:
                return f"The trial reported {values[metric_id]} as the metric {metric_id!r}, and never a finite number."
        reported_ids = sorted({one.metric_id for one in measurements.read(self.message.measurements)})
        reported = reported_ids or "no metric"
        return f"The trial ended without reporting the metric {', '.join(missing)!r}; it reported {reported}."

    def _with_state(self, state: int, **times: datetime) -> Self:
        changed = copy_of(self.message)
        changed.state = state
        for name, instant in times.items():
            getattr(changed, name).FromDatetime(instant)
        return type(self)(changed)


def _final(values: Sequence[TrialMeasurement], metric: Message, selection: int) -> TrialMeasurement:
    if selection != _BEST:
        return values[-1]
    best = min if metric.goal == _MINIMIZE else max
    return best(values, key=lambda one: one.value)


MIN_FAILED, MAX_FAILED_SHARE = 5, 0.5
"""With maxFailedTrialCount 0, at least this number of failures, and more than this share of ended trials, end
the job. The project's choice.
"""

WITH_ITS_JOB = "The trial was cancelled because "
"""With it begins the reason of a trial that ended with its tuning job. The project's words."""


@dataclass(frozen=True, kw_only=True)
class TuningJob(VertexJob):
    """A snapshot of one tuning job.

    Attributes:
        message: the HyperparameterTuningJob without its trials.
        trials: by id, in the order in which they were suggested.
    """

    kind: ClassVar[str] = "HyperparameterTuningJob"
    collection: ClassVar[str] = "hyperparameterTuningJobs"
    resource: ClassVar[Any] = HyperparameterTuningJob
    faults_of: ClassVar[Callable[[Message, Surroundings], list[str]]] = staticmethod(faults_of)

    trials: Mapping[str, TuningTrial] = field(default_factory=dict)

    @property
    def spec(self) -> Message:
        return self.message.trial_job_spec

    @property
    def copies(self) -> int:
        """How many trials run at once."""
        return int(self.message.parallel_trial_count)

    @property
    def objectives(self) -> list[Message]:
        """The metrics to optimize: all but those of safe search."""
        return [metric for metric in self.message.study_spec.metrics if not metric.HasField("safety_config")]

    @property
    def maximize(self) -> tuple[bool, ...]:
        """For each objective, whether higher is better; an unset goal means to maximize."""
        return tuple(metric.goal != _MINIMIZE for metric in self.objectives)

    @property
    def running(self) -> list[TuningTrial]:
        return [trial for trial in self.trials.values() if not trial.has_ended]

    def with_trial(self, trial: TuningTrial) -> Self:
        """The job with a new or updated trial."""
        return replace(self, trials={**self.trials, trial.id: trial})

    def results_of(self, trial: TuningTrial) -> list[float] | None:
        """The final value of each objective of an ended trial; None if it is infeasible."""
        if trial.state is not TuningTrialState.SUCCEEDED:
            return None
        results = {metric.metric_id: metric.value for metric in trial.message.final_measurement.metrics}
        return [results[metric.metric_id] for metric in self.objectives]

    def to_json(self, *, enums_as_integers: bool) -> dict[str, object]:
        """The job as the API answers it, with its trials."""
        fields = super().to_json(enums_as_integers=enums_as_integers)
        if self.trials:
            fields["trials"] = [
                trial.as_integers if enums_as_integers else trial.as_names for trial in self.trials.values()
            ]
        return fields


def next_trial(job: TuningJob, values: Mapping[str, Value], *, custom_job_id: str) -> TuningTrial:
    """The job's next trial, REQUESTED. Integers become floats: a protobuf Value has no others."""
    trial = HyperparameterTuningJob.pb(HyperparameterTuningJob()).trials.add()
    trial.id = str(len(job.trials) + 1)
    trial.name = f"{job.parent}/studies/{job.job_id}/trials/{trial.id}"
    trial.custom_job = f"{job.parent}/customJobs/{custom_job_id}"
    trial.state = TuningTrialState.REQUESTED
    for parameter_id, value in values.items():
        parameter = trial.parameters.add()
        parameter.parameter_id = parameter_id
        if isinstance(value, str):
            parameter.value.string_value = value
        else:
            parameter.value.number_value = value
    return TuningTrial(trial)


def values_of(job: TuningJob, trial: TuningTrial) -> dict[str, Value]:
    """The parameters of a trial as in its flags: integers have no fraction, except for DOUBLE."""
    doubles = set(_doubles(job.message.study_spec.parameters))
    values: dict[str, Value] = {}
    for parameter in trial.message.parameters:
        value = getattr(parameter.value, parameter.value.WhichOneof("kind"))
        is_whole = parameter.parameter_id not in doubles and isinstance(value, float) and value.is_integer()
        values[parameter.parameter_id] = int(value) if is_whole else value
    return values


def _doubles(specs: Sequence[Message]) -> Iterator[str]:
    for spec in specs:
        if spec.WhichOneof("parameter_value_spec") == "double_value_spec":
            yield spec.parameter_id
        yield from _doubles([child.parameter_spec for child in spec.conditional_parameter_specs])


def custom_job_of(job: TuningJob, trial: TuningTrial, *, metrics_dir: str, at: datetime) -> VertexJob:
    """The job that runs a trial: every pool gets the parameters as flags after its arguments."""
    message = CustomJob.pb(CustomJob())
    message.name, message.display_name = trial.message.custom_job, job.message.display_name
    message.job_spec.CopyFrom(job.message.trial_job_spec)
    flags = [f"--{name}={value}" for name, value in values_of(job, trial).items()]
    for pool in message.job_spec.worker_pool_specs:
        match pool.WhichOneof("task"):
            case "container_spec":
                pool.container_spec.args.extend(flags)
            case "python_package_spec":
                pool.python_package_spec.args.extend(flags)
    place = TrialAssignment(
        tuning_job_id=job.job_id,
        trial_id=trial.id,
        metrics_dir=metrics_dir,
        metric_tag=job.objectives[0].metric_id,
    )
    custom_job = VertexJob(
        project=job.project, location=job.location, job_id=trial.job_id, message=message, trial=place
    )
    return custom_job.begun(at)


def failed_of(job: TuningJob) -> list[TuningTrial]:
    """Its infeasible trials, without those that were cancelled with the job."""
    infeasible = [trial for trial in job.trials.values() if trial.state is TuningTrialState.INFEASIBLE]
    return [trial for trial in infeasible if not trial.message.infeasible_reason.startswith(WITH_ITS_JOB)]


def too_many_failed(job: TuningJob) -> bool:
    """Whether the job must fail because of its infeasible trials."""
    failed = failed_of(job)
    over = [*failed, *(trial for trial in job.trials.values() if trial.state is TuningTrialState.SUCCEEDED)]
    if limit := job.message.max_failed_trial_count:
        return len(failed) >= int(limit)
    first_failed = len(failed) == len(over) > 0 and any(trial.id == "1" for trial in failed)
    return first_failed or (len(failed) >= MIN_FAILED and len(failed) > MAX_FAILED_SHARE * len(over))
