"""Studies made up for these tests."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

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
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState

START = datetime(2026, 1, 1, tzinfo=UTC)
RATE = Interval(name="learning_rate", low=1e-4, high=1e-1, scale=Scale.LOG)
UNITS = Choices(name="num_units", values=(64.0, 128.0, 512.0))
JOB = "projects/1/locations/us-central1/hyperparameterTuningJobs/12"


def trial(
    number: int,
    *,
    final: float | None = None,
    state: TrialState = TrialState.SUCCEEDED,
    curve: tuple[float, ...] | None = None,
    parameters: Mapping[str, Value] | None = None,
    reason: str = "",
) -> StudyTrial:
    """A trial that rose to `final` in five steps, or along `curve`."""
    values = curve if curve is not None else (() if final is None else rising(final))
    return StudyTrial(
        id=str(number),
        state=state,
        parameters={"learning_rate": 0.01, "num_units": 128.0} if parameters is None else parameters,
        measurements=tuple(StudyMeasurement(value=v, step=step) for step, v in enumerate(values, start=1)),
        final=final,
        start_time=START,
        end_time=START + timedelta(seconds=30) if state.ended else None,
        infeasible_reason=reason,
    )


def rising(final: float) -> tuple[float, ...]:
    return (*(final * (1 - math.exp(-step)) for step in range(1, 5)), final)


def study(
    *trials: StudyTrial,
    parameters: tuple[Parameter, ...] = (RATE, UNITS),
    metric: str = "accuracy",
    goal: Goal = Goal.MAXIMIZE,
    title: str = "horses-tuned",
) -> Study:
    return Study(
        name=JOB,
        title=title,
        metric=metric,
        goal=goal,
        parameters=parameters,
        trials=trials,
        max_trials=max(1, len(trials)),
    )


def many(count: int) -> Study:
    """Succeeded trials of rising value, save every tenth, which is infeasible."""
    return study(
        *(
            trial(n, state=TrialState.INFEASIBLE, curve=(), reason="out of memory")
            if n % 10 == 0
            else trial(n, final=n / (count + 1))
            for n in range(1, count + 1)
        )
    )
