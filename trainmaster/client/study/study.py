"""A study: what was searched, what each trial was given, and what it measured. Values only."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState

Value = float | str


class Scale(StrEnum):
    LINEAR = "linear"
    LOG = "log"
    REVERSE_LOG = "reverse_log"


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A parameter that takes any number, or any whole number, from `low` to `high`, both included."""

    name: str
    low: float
    high: float
    scale: Scale = Scale.LINEAR


@dataclass(frozen=True, kw_only=True)
class Choices:
    """A parameter that takes one of some numbers or words."""

    name: str
    values: tuple[Value, ...]


Parameter = Interval | Choices


@dataclass(frozen=True, kw_only=True)
class StudyMeasurement:
    """One report of a trial: the study's metric after `step` steps, counted as the trainer counts."""

    value: float  # finite
    step: int


@dataclass(frozen=True, kw_only=True)
class StudyTrial:
    """One trial; a conditional parameter that does not apply to it is absent from `parameters`."""

    id: str
    state: TrialState
    parameters: Mapping[str, Value] = field(default_factory=dict)
    measurements: tuple[StudyMeasurement, ...] = ()
    final: float | None = None  # the measurement that counts, as the service selected it
    start_time: datetime | None = None
    end_time: datetime | None = None
    infeasible_reason: str = ""

    @property
    def word(self) -> str:
        """Its state for people."""
        return self.state.value.lower()

    @property
    def result(self) -> float | None:
        """The value that counts in a comparison: only a succeeded trial has one."""
        return self.final if self.state is TrialState.SUCCEEDED else None

    def elapsed(self, now: datetime) -> timedelta | None:
        """How long it has run, or ran; None before its start."""
        return None if self.start_time is None else (self.end_time or now) - self.start_time


@dataclass(frozen=True, kw_only=True)
class Study:
    """One study at one moment; `parameters` are in the order of the request, conditional ones after their parent."""

    name: str  # the tuning job's resource name
    title: str
    metric: str
    goal: Goal
    parameters: tuple[Parameter, ...]
    trials: tuple[StudyTrial, ...]
    max_trials: int

    @property
    def best(self) -> StudyTrial | None:
        """The succeeded trial with the best result; of equal ones the first. None where none has a result."""
        return next(iter(self.trials_by_rank()), None)

    def trials_by_rank(self) -> list[StudyTrial]:
        """Trials that have a result, best first, equal ones in the order of the study."""
        with_result = [trial for trial in self.trials if trial.result is not None]
        return sorted(with_result, key=lambda trial: self.loss(trial.result))

    def loss(self, value: float | None) -> float:
        """Less is better, whatever the goal; infinite for no value."""
        if value is None:
            return math.inf
        return -value if self.goal is Goal.MAXIMIZE else value

    def best_measured(self, trial: StudyTrial) -> float | None:
        """The best value that the trial has reported so far."""
        return min((measurement.value for measurement in trial.measurements), key=self.loss, default=None)


def counts(trials: Sequence[StudyTrial]) -> str:
    """How many trials are in which state, for example `4 succeeded, 2 active`."""
    number = Counter(trial.state for trial in trials)
    return ", ".join(f"{number[state]} {state.lower()}" for state in TrialState if number[state]) or "none"


def number(value: float) -> str:
    """A number in at most four digits, whole ones up to a million written out."""
    if value == int(value) and abs(value) < 1e6:  # noqa: PLR2004 - beyond, an exponent is shorter
        return str(int(value))
    mantissa, _, exponent = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else mantissa


def shown(value: Value | None) -> str:
    """A parameter's value, on one line; empty for one that does not apply."""
    if value is None:
        return ""
    return one_line(value) if isinstance(value, str) else number(value)
