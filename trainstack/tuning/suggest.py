"""Suggests parameters: Bayesian by default, random, or the whole grid in order.

One `TrialSuggestions` belongs to one study; after a restart, it is rebuilt from the study's trials.

Suggestions are Optuna's, because it is driven from outside (`ask`, `tell`), resumes a study trial by trial
and needs no GPU stack. Vizier's Gaussian process needs JAX, Ax needs PyTorch, and Hyperopt calls the
objective itself.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import optuna
from google.cloud.aiplatform_v1.types.study import StudySpec
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from trainstack.tuning.space import SpaceParameter, grid
from trainstack.tuning.trial import Value

_SEEDS = 2**32
Algorithm = StudySpec.Algorithm
"""Unspecified is the Bayesian one."""

# Optuna warns once per study that `group` is experimental; its version is pinned here.
warnings.filterwarnings("ignore", message="Argument ``group`` is an experimental feature")


@dataclass(frozen=True, kw_only=True)
class SuggestedTrial:
    """A trial that was suggested earlier. Of an ended one `results` is None when it was infeasible."""

    trial_id: str
    values: Mapping[str, Value]
    has_ended: bool
    results: Sequence[float] | None = None


class TrialSuggestions:
    """Suggests values and records results. A trial is identified by its id in the study. Not thread-safe."""

    def __init__(
        self,
        space: Sequence[SpaceParameter],
        *,
        algorithm: int,
        maximize: Sequence[bool],
        seed: int | None = None,
        past: Sequence[SuggestedTrial] = (),
    ) -> None:
        """Start from `past`, in order of suggestion.

        `maximize` says for each objective whether higher is better. `seed` makes a search reproducible; after
        a restart, it continues with draws that differ from the earlier ones.
        """
        self._space = tuple(space)
        self._points: Iterator[dict[str, Value]] | None = None
        if algorithm == Algorithm.GRID_SEARCH:
            self._points = grid(self._space)
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            directions=["maximize" if more else "minimize" for more in maximize],
            sampler=_sampler(algorithm, None if seed is None else (seed + len(past)) % _SEEDS),
        )
        self._numbers: dict[str, int] = {}
        for number, trial in enumerate(past):
            if self._points is not None:
                next(self._points, None)
                continue
            self._study.add_trial(_frozen_trial_of(self._space, trial))
            if not trial.has_ended:
                self._numbers[trial.trial_id] = number

    def next(self, trial_id: str) -> dict[str, Value] | None:
        """Values of a new trial, only for its active parameters; None if the grid is exhausted."""
        if self._points is not None:
            return next(self._points, None)
        trial = self._study.ask()
        self._numbers[trial_id] = trial.number
        values: dict[str, Value] = {}
        _draw(trial, self._space, values)
        return values

    def tell(self, trial_id: str, results: Sequence[float] | None) -> None:
        """Record the end of a trial: one result for each objective, or None if it was infeasible."""
        if self._points is not None:
            return
        number = self._numbers.pop(trial_id)
        if results is None:
            self._study.tell(number, state=TrialState.FAIL)
        else:
            self._study.tell(number, list(results))


def _sampler(algorithm: int, seed: int | None) -> BaseSampler:
    if algorithm == Algorithm.ALGORITHM_UNSPECIFIED:
        # Running trials count as bad ones, so that parallel suggestions differ. Parameters that are active
        # together are drawn together.
        return TPESampler(seed=seed, constant_liar=True, multivariate=True, group=True)
    return RandomSampler(seed=seed)


def _frozen_trial_of(space: Sequence[SpaceParameter], past: SuggestedTrial) -> FrozenTrial:
    active = list(_active(space, past.values))
    state = TrialState.FAIL if past.results is None else TrialState.COMPLETE
    return create_trial(
        state=state if past.has_ended else TrialState.RUNNING,
        values=past.results,
        params={parameter.path: parameter.draw_of(value) for parameter, value in active},
        distributions={parameter.path: parameter.distribution for parameter, _ in active},
    )


def _draw(trial: Trial, parameters: Sequence[SpaceParameter], values: dict[str, Value]) -> None:
    for parameter in parameters:
        value = parameter.value_of(_draw_value(trial, parameter))
        values[parameter.parameter_id] = value
        _draw(trial, parameter.below(value), values)


def _active(
    parameters: Sequence[SpaceParameter], values: Mapping[str, Value]
) -> Iterator[tuple[SpaceParameter, Value]]:
    for parameter in parameters:
        value = values[parameter.parameter_id]
        yield parameter, value
        yield from _active(parameter.below(value), values)


def _draw_value(trial: Trial, parameter: SpaceParameter) -> float:
    match parameter.distribution:
        case FloatDistribution(low=low, high=high, log=log):
            return trial.suggest_float(parameter.path, low, high, log=log)
        case IntDistribution(low=first, high=last, log=log):
            return trial.suggest_int(parameter.path, first, last, log=log)
        case CategoricalDistribution(choices=choices):
            return choices.index(trial.suggest_categorical(parameter.path, choices))
