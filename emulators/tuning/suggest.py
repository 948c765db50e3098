"""What to try next: Bayesian by default, at random, or the whole grid in order.

One `Suggestions` belongs to one study and is rebuilt from its trials after a restart.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import Trial, TrialState

from emulators.tuning.space import Choice, Double, Integer, Parameter, Scale, Value, grid

CANDIDATES, STARTUP_TRIALS = 24, 10
"""Optuna's own: points drawn for each suggestion, and random trials before the first model."""


class Algorithm(Enum):
    """How suggestions are made, with the API's numbers."""

    BAYESIAN = 0
    GRID = 2
    RANDOM = 3


class Suggestions:
    """Asks for values and tells results. A trial is known by the id that the study gives it."""

    def __init__(
        self,
        space: Sequence[Parameter],
        *,
        algorithm: Algorithm,
        maximize: Sequence[bool],
        seed: int | None = None,
    ) -> None:
        """Nothing is tried yet. `maximize` says for each metric whether more is better; `seed` repeats a search."""
        self._space = tuple(space)
        self._points: Iterator[dict[str, Value]] | None = None
        if algorithm is Algorithm.GRID:
            self._points = grid(self._space)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            directions=["maximize" if more else "minimize" for more in maximize],
            sampler=_sampler(algorithm, seed),
        )
        self._numbers: dict[str, int] = {}

    def next(self, trial_id: str) -> dict[str, Value] | None:
        """Values of a new trial, for its active parameters alone; None when the grid is exhausted."""
        if self._points is not None:
            return next(self._points, None)
        trial = self._study.ask()
        self._numbers[trial_id] = trial.number
        values: dict[str, Value] = {}
        _draw(trial, self._space, values)
        return values

    def know(self, trial_id: str, values: Mapping[str, Value]) -> None:
        """A trial of an earlier stack, in the order in which they were suggested. Its result may follow."""
        if self._points is not None:
            next(self._points, None)
            return
        self._study.enqueue_trial(_internal(self._space, values))
        self.next(trial_id)

    def tell(self, trial_id: str, results: Sequence[float] | None) -> None:
        """How a trial ended: one result for each metric, or None when it was infeasible."""
        if self._points is not None:
            return
        number = self._numbers.pop(trial_id)
        if results is None:
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, list(results))


def _sampler(algorithm: Algorithm, seed: int | None) -> BaseSampler:
    if algorithm is Algorithm.BAYESIAN:
        # Running trials count as bad ones, so that parallel suggestions differ.
        return TPESampler(
            seed=seed, n_startup_trials=STARTUP_TRIALS, n_ei_candidates=CANDIDATES, constant_liar=True
        )
    return RandomSampler(seed=seed)


def _draw(trial: Trial, parameters: Sequence[Parameter], values: dict[str, Value]) -> None:
    for parameter in parameters:
        value = _drawn(trial, parameter)
        values[parameter.parameter_id] = value
        _draw(trial, parameter.below(value), values)


def _drawn(trial: Trial, parameter: Parameter) -> Value:
    path, log = parameter.path, parameter.scale is not Scale.LINEAR
    match parameter.domain:
        case Double(low=low, high=high):
            number = trial.suggest_float(path, low, high, log=log)
            return min(max(low + high - number, low), high) if _mirrored(parameter) else number
        case Integer(low=first, high=last):
            whole = trial.suggest_int(path, first, last, log=log)
            return first + last - whole if _mirrored(parameter) else whole
        case Choice(values=values, ordered=True):
            # Listed values are already spaced as the user wants them: their order is what is searched.
            return values[trial.suggest_int(path, 0, len(values) - 1)]
        case Choice(values=values):
            return values[trial.suggest_categorical(path, range(len(values)))]


def _internal(parameters: Sequence[Parameter], values: Mapping[str, Value]) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for parameter in parameters:
        value = values[parameter.parameter_id]
        match parameter.domain:
            case Choice(values=listed):
                found[parameter.path] = listed.index(value)
            case Double(low=low, high=high) | Integer(low=low, high=high):
                number = float(value) if isinstance(parameter.domain, Double) else int(value)
                found[parameter.path] = low + high - number if _mirrored(parameter) else number
        found |= _internal(parameter.below(value), values)
    return found


def _mirrored(parameter: Parameter) -> bool:
    return parameter.scale is Scale.REVERSE_LOG
