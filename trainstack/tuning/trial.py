"""One trial of a tuning job as the API shows it; every change is a new value.

REQUESTED ──► ACTIVE ──► SUCCEEDED | INFEASIBLE
                └──► STOPPING ──► SUCCEEDED | INFEASIBLE
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Self

from google.cloud.aiplatform_v1.types.study import Trial
from google.protobuf.json_format import MessageToDict

from trainstack.jobs.resource.job import copy_of
from trainstack.jobs.resource.validation import Message
from trainstack.tuning import measurements
from trainstack.tuning.measurements import Point, TrialMeasurement

Value = float | int | str
"""Of a parameter: a float for DOUBLE and DISCRETE, an int for INTEGER, text for CATEGORICAL."""

_BEST, _MINIMIZE = 2, 2


TuningTrialState = Trial.State
_ENDED = frozenset({TuningTrialState.SUCCEEDED, TuningTrialState.INFEASIBLE})


@dataclass(frozen=True)
class TuningTrial:
    """A snapshot of one trial. `message` is never changed in place."""

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

    def measured(self, text: str) -> Self:
        """The trial with new reports from `text`, its metric file; the same object if there are none."""
        known = measurements.read(self.message.measurements)
        started = self.message.start_time.ToDatetime(tzinfo=UTC)
        measured = measurements.merged_measurements(known, measurements.read_reports(text, started=started))
        if measured == known:
            return self
        changed = copy_of(self.message)
        measurements.write(changed, measured)
        return type(self)(changed)

    def ended(self, study: Message, *, at: datetime, failure: str, text: str = "") -> Self:
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
