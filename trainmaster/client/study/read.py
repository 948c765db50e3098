"""Finds the tuning job of a run, or one by its name, and reads its study."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.find import Run, find_run
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
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.completion.trials import trial_order
from trainmaster.orchestrator.core.job_names import JobKind, is_job_name
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.drop_status import reason_of
from trainmaster.orchestrator.core.runs.job import TrialState

if TYPE_CHECKING:
    from google.cloud.aiplatform_v1.types import HyperparameterTuningJob

_SCALES = {"UNIT_LOG_SCALE": Scale.LOG, "UNIT_REVERSE_LOG_SCALE": Scale.REVERSE_LOG}


@dataclass(frozen=True, kw_only=True)
class TuningStudy:
    """A tuning job's study, and the run that it belongs to; None if it was named by its job.

    `state` is the job's, for example `JOB_STATE_RUNNING`. `model_uri` is where the best trial leaves its model, None
    while no trial has a result.
    """

    study: Study
    state: str
    has_ended: bool
    model_uri: str | None = None
    run: Run | None = None


def find_tuning(clients: Clients, text: str) -> TuningStudy:
    """The tuning that `text` means: a run as `find_run` finds it, or the resource name of any tuning job.

    Raises:
        NotFound: there is no such run, or it has no tuning job.
        ClientRefused: `text` is the name of another resource.
        google.api_core.exceptions.NotFound: there is no such job.
    """
    if not text.startswith("projects/"):
        return tuning_of(clients, find_run(clients, text))
    if not is_job_name(text, JobKind.TUNING):
        raise ClientRefused(
            f"{text!r} is not the name of a tuning job. A name is "
            "projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID."
        )
    return _read_tuning(clients, text, None)


def tuning_of(clients: Clients, run: Run) -> TuningStudy:
    """The same of a run.

    Raises:
        NotFound: the run has no job yet, or its job is not a tuning.
    """
    record = run.record
    if record.job is None:
        reason = reason_of(record)
        why = f": {one_line(reason)}" if reason else ""
        raise NotFound(
            f"{record.run_id} is {record.state} and has no job yet{why}\nFollow it: trainmaster logs -f {record.run_id}"
        )
    if not is_job_name(record.job.name, JobKind.TUNING):
        raise NotFound(
            f"{record.run_id} is not a tuning, so it has no trials to draw. See it: trainmaster logs {record.run_id}"
        )
    return _read_tuning(clients, record.job.name, run)


def _read_tuning(clients: Clients, job_name: str, run: Run | None) -> TuningStudy:
    """The best trial's model is where the record says, else below the job's directory."""
    job = clients.read_job(job_name)
    prefix_uri = job.trial_job_spec.base_output_directory.output_uri_prefix.rstrip("/")
    study = study_of(job)
    best = study.best
    recorded = run.record.tuning.best_trial if run is not None and run.record.tuning is not None else None
    model_uri = f"{prefix_uri}/{best.id}/model/" if best and prefix_uri else None
    if recorded is not None and best is not None and recorded.id == best.id:
        model_uri = recorded.model_uri or model_uri
    return TuningStudy(
        study=study, state=job.state.name, has_ended=bool(job.end_time), model_uri=model_uri, run=run
    )


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
