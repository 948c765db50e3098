"""The trials of a tuning job: the record of each, and the best of them or why no trial is.

The service names no best trial. Among equal ones ours has the lowest id, so that a study always gives the
same record. Only the measurement that counts is kept: all those of 1,000 trials would be tens of megabytes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.completion.error_repair import as_sentence
from trainmaster.orchestrator.core.completion.explanation import without_log_link
from trainmaster.orchestrator.core.completion.replica_exit import parse_exit
from trainmaster.orchestrator.core.documents.faults import listed, nearest
from trainmaster.orchestrator.core.requests.spec import Goal, Measurement, Tuning
from trainmaster.orchestrator.core.runs.job import (
    BestTrial,
    Measured,
    RecordedTrial,
    Trial,
    TrialState,
    trials_by_state,
)

REASON_MAX_CHARS = 300


def recorded_trials(trials: Sequence[Trial], tuning: Tuning) -> tuple[RecordedTrial, ...]:
    """Every trial as the record keeps it, ordered by id; the service lists them in any order."""
    return tuple(
        RecordedTrial(
            id=trial.id,
            state=trial.state,
            parameters=dict(sorted(trial.parameters.items())),
            measurement=_finite(measurement_of(trial, tuning)),
            measurements=len(trial.measurements),
            start_time=trial.start_time,
            end_time=trial.end_time,
            infeasible_reason=without_log_link(trial.infeasible_reason)[:REASON_MAX_CHARS] or None,
        )
        for trial in sorted(trials, key=lambda trial: trial_order(trial.id))
    )


def measurement_of(trial: Trial, tuning: Tuning) -> Measured | None:
    """The measurement that counts: the service's final one, else the one that `tuning.measurement` selects."""
    if trial.final is not None and trial.final.metrics:
        return trial.final
    metric = tuning.metrics[0]
    numbers = ((measured, measured.metrics.get(metric.id, math.nan)) for measured in trial.measurements)
    measured = [measurement for measurement, value in numbers if math.isfinite(value)]
    if not measured:
        return trial.final
    if tuning.measurement is Measurement.LAST:
        return measured[-1]
    return max(measured, key=lambda measurement: _gain(measurement.metrics[metric.id], metric.goal))


def best_trial(trials: Sequence[Trial], tuning: Tuning) -> BestTrial | None:
    """The succeeded trial whose first metric is best; the first of equals. None if no such trial has a value."""
    metric = tuning.metrics[0]
    best: BestTrial | None = None
    for trial in sorted(trials, key=lambda trial: trial_order(trial.id)):
        measured = measurement_of(trial, tuning)
        value = math.nan if measured is None else measured.metrics.get(metric.id, math.nan)
        if trial.state is not TrialState.SUCCEEDED or not math.isfinite(value):
            continue
        if best is None or _gain(value, metric.goal) > _gain(best.value, metric.goal):
            best = BestTrial(
                id=trial.id,
                metric=metric.id,
                goal=metric.goal.value,
                value=value,
                parameters=dict(sorted(trial.parameters.items())),
            )
    return best


def best_measurement(trials: Sequence[Trial], best: BestTrial, tuning: Tuning) -> Mapping[str, float]:
    """The service's metrics of the best trial, by id."""
    measured = next((measurement_of(trial, tuning) for trial in trials if trial.id == best.id), None)
    return measured.metrics if measured else {}


def why_no_best(trials: Sequence[Trial], tuning: Tuning) -> str:
    """Why there is no best trial, with the most likely reason."""
    metric = tuning.metrics[0].id
    if not trials:
        return "the study has no trials, so there is no best trial"
    measured = [one.metrics for trial in trials for one in (*trial.measurements, trial.final) if one]
    reported = sorted({name for metrics in measured for name in metrics})
    if metric in reported:
        if not any(math.isfinite(metrics.get(metric, math.nan)) for metrics in measured):
            return f"no trial is best: the metric {metric!r} was never a number: every trial diverged"
        return f"no trial is best: none that reported {metric!r} succeeded ({_states(trials)})"
    if reported:
        hint = nearest(metric, reported)
        return (
            f"no trial reported the metric {metric!r}; they reported {listed(map(repr, reported))}. "
            "The trainer must report the metric under the id that the request names"
            + (f": {hint}" if hint else "")
        )
    return _why_none_reported(trials, metric)


def _why_none_reported(trials: Sequence[Trial], metric: str) -> str:
    """Of trials without any measurement."""
    if any(parse_exit(trial.infeasible_reason) for trial in trials):
        return f"no trial is best: none reported {metric!r} ({_states(trials)}); `tuning.trials` of the record says why"
    reasons = (without_log_link(trial.infeasible_reason) for trial in trials)
    reason = next(filter(None, reasons), "")[:REASON_MAX_CHARS]
    said = f" Vertex AI says: {as_sentence(reason)}" if reason else ""
    return (
        f"no trial reported the metric {metric!r} ({_states(trials)}).{said} If trials ran to their end, the trainer "
        "never reports it, or under another tag: its chief must call report_hyperparameter_tuning_metric with "
        f"hyperparameter_metric_tag={metric!r}"
    )


def _states(trials: Sequence[Trial]) -> str:
    return listed(f"{count} {state.lower()}" for state, count in trials_by_state(trials).items())


def _gain(value: float, goal: Goal) -> float:
    return value if goal is Goal.MAXIMIZE else -value


def _finite(measured: Measured | None) -> Measured | None:
    if measured is None:
        return None
    finite = {name: value for name, value in sorted(measured.metrics.items()) if math.isfinite(value)}
    return replace(measured, metrics=finite)


def trial_order(trial_id: str) -> tuple[int, str]:
    """Sorts trials by id, which counts from 1; an id that is not a number comes last."""
    return (int(trial_id) if trial_id.isdecimal() else 2**63, trial_id)
