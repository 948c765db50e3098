"""Reads a `Study` from JobService's `HyperparameterTuningJob`."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from trainmaster.client.study.study import (
    Choices,
    Interval,
    Parameter,
    Scale,
    Study,
    StudyMeasurement,
    StudyTrial,
    Value,
)
from trainmaster.orchestrator.core.completion.trials import trial_order
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types import HyperparameterTuningJob

_SCALES = {"UNIT_LOG_SCALE": Scale.LOG, "UNIT_REVERSE_LOG_SCALE": Scale.REVERSE_LOG}


def study_of(job: "HyperparameterTuningJob") -> Study:
    """The study of a tuning job, by its first metric, as the service compares trials."""
    metric = job.study_spec.metrics[0]
    return Study(
        name=job.name,
        title=job.display_name,
        metric=metric.metric_id,
        goal=Goal.MINIMIZE if metric.goal.name == "MINIMIZE" else Goal.MAXIMIZE,
        parameters=merged_parameters(_parameters(job.study_spec.parameters)),
        # The protobuf messages behind proto-plus, which takes twenty times as long to read many measurements.
        trials=tuple(
            sorted(
                (_trial(each, metric.metric_id) for each in type(job).pb(job).trials),
                key=lambda trial: trial_order(trial.id),
            )
        ),
        max_trials=job.max_trial_count,
    )


def merged_parameters(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    """One parameter a name: below several parents the same name may be searched in several ranges, which are joined."""
    by_name: dict[str, Parameter] = {}
    for parameter in parameters:
        known = by_name.setdefault(parameter.name, parameter)
        if isinstance(known, Interval) and isinstance(parameter, Interval):
            low, high = min(known.low, parameter.low), max(known.high, parameter.high)
            by_name[known.name] = replace(known, low=low, high=high)
    return tuple(by_name.values())


def _parameters(specs: Iterable[Any]) -> Iterator[Parameter]:  # Any: proto-plus messages are untyped
    for spec in specs:
        yield _parameter(spec)
        yield from _parameters(child.parameter_spec for child in spec.conditional_parameter_specs)


def _parameter(spec: Any) -> Parameter:
    name, scale = spec.parameter_id, _SCALES.get(spec.scale_type.name, Scale.LINEAR)
    match spec._pb.WhichOneof("parameter_value_spec"):  # noqa: SLF001 - proto-plus has no other way to ask
        case "categorical_value_spec":
            return Choices(name=name, values=tuple(spec.categorical_value_spec.values))
        case "discrete_value_spec":
            return Choices(name=name, values=tuple(sorted(spec.discrete_value_spec.values)))
        case "integer_value_spec":
            limits = spec.integer_value_spec
        case _:
            limits = spec.double_value_spec
    return Interval(name=name, low=float(limits.min_value), high=float(limits.max_value), scale=scale)


def _trial(trial: Any, metric: str) -> StudyTrial:  # Any: generated messages are untyped
    values = [
        (_metric(measurement, metric), int(measurement.step_count)) for measurement in trial.measurements
    ]
    # A trainer may report without steps, which are then 0: its measurements are counted from 1. But where later ones
    # have steps, a first one at 0 was made before training.
    first = 0 if any(step for _, step in values) else 1
    numbered = zip(chain([first], count(2)), values, strict=False)
    return StudyTrial(
        id=trial.id,
        state=TrialState(
            trial.DESCRIPTOR.fields_by_name["state"].enum_type.values_by_number[trial.state].name
        ),
        parameters={parameter.parameter_id: _value(parameter) for parameter in trial.parameters},
        measurements=tuple(
            StudyMeasurement(value=value, step=step or number)
            for number, (value, step) in numbered
            if value is not None
        ),
        final=_metric(trial.final_measurement, metric) if trial.HasField("final_measurement") else None,
        start_time=_moment(trial, "start_time"),
        end_time=_moment(trial, "end_time"),
        infeasible_reason=trial.infeasible_reason,
    )


def _moment(trial: Any, name: str) -> datetime | None:
    return getattr(trial, name).ToDatetime(tzinfo=UTC) if trial.HasField(name) else None


def _metric(measurement: Any, metric: str) -> float | None:
    found = (float(each.value) for each in measurement.metrics if each.metric_id == metric)
    value = next(found, math.nan)
    return value if math.isfinite(value) else None


def _value(parameter: Any) -> Value:
    value = parameter.value
    kind = value.WhichOneof("kind")
    return (
        float(value.number_value) if kind == "number_value" else str(getattr(value, kind or "string_value"))
    )
