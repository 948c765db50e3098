"""Suggests parameters: Bayesian by default, random, or the whole grid in order.

One `TrialSuggestions` belongs to one study; after a restart, it is rebuilt from the study's trials.

Suggestions are Optuna's, because it is driven from outside (`ask`, `tell`), resumes a study trial by trial
and needs no GPU stack. Vizier's Gaussian process needs JAX, Ax needs PyTorch, and Hyperopt calls the
objective itself.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from google.cloud.aiplatform_v1.types.study import StudySpec
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.trial import FrozenTrial, Trial, TrialState, create_trial

from trainstack.jobs.resource.machines import Message
from trainstack.tuning.tuning_job import Value

_LOG, _REVERSE_LOG = 2, 3
"""The API's numbers of the nonlinear scales."""

Distribution = FloatDistribution | IntDistribution | CategoricalDistribution


@dataclass(frozen=True, kw_only=True)
class SpaceParameter:
    """One parameter.

    Attributes:
        parameter_id: may occur again among siblings' children.
        path: unique in the study.
        distribution: the searched values, or indexes into `listed`.
        listed: the values of CATEGORICAL and DISCRETE, in order.
        mirrored: on the reverse logarithmic scale, which is the logarithmic one mirrored.
        children: each with the values of this parameter for which it is active.
    """

    parameter_id: str
    path: str
    distribution: Distribution
    listed: tuple[Value, ...] = ()
    mirrored: bool = False
    children: tuple[tuple[frozenset[Value], "SpaceParameter"], ...] = ()

    def below(self, value: Value) -> tuple["SpaceParameter", ...]:
        """The children that are active when this parameter has `value`."""
        return tuple(child for values, child in self.children if value in values)

    def value_of(self, drawn: float) -> Value:
        """The value for a draw of the distribution."""
        return self.listed[int(drawn)] if self.listed else self._mirror_value(drawn)

    def draw_of(self, value: Value) -> float:
        """The draw for `value`."""
        return self.listed.index(value) if self.listed else self._mirror_value(value)

    def every_value(self) -> Sequence[Value]:
        match self.distribution:
            case IntDistribution(low=low, high=high) if not self.listed:
                return range(low, high + 1)
            case FloatDistribution():
                raise ValueError("a DOUBLE parameter has no grid; the study should have been refused")
        return self.listed

    def _mirror_value(self, value: Any) -> Any:
        match self.distribution:
            case (FloatDistribution() | IntDistribution()) as whole if self.mirrored:
                return min(max(whole.low + whole.high - value, whole.low), whole.high)
        return value


def space_of(study: Message) -> tuple[SpaceParameter, ...]:
    """The parameters of a validated StudySpec, in its order. Source: its comments, read 2026-11."""
    return tuple(_parameter(spec, str(index)) for index, spec in enumerate(study.parameters))


def grid(parameters: Sequence[SpaceParameter]) -> Iterator[dict[str, Value]]:
    """Every point of a space without DOUBLE parameters; the last parameter changes fastest."""
    if not parameters:
        yield {}
        return
    first, *rest = parameters
    for value in first.every_value():
        for below in grid(first.below(value)):
            for others in grid(rest):
                yield {first.parameter_id: value, **below, **others}


def _parameter(spec: Message, path: str) -> SpaceParameter:
    children = tuple(
        (
            frozenset(getattr(child, child.WhichOneof("parent_value_condition")).values),
            _parameter(child.parameter_spec, f"{path}.{index}"),
        )
        for index, child in enumerate(spec.conditional_parameter_specs)
    )
    return SpaceParameter(
        parameter_id=spec.parameter_id,
        path=path,
        distribution=_distribution(spec),
        listed=_choices_of(spec),
        mirrored=spec.scale_type == _REVERSE_LOG,
        children=children,
    )


def _choices_of(spec: Message) -> tuple[Value, ...]:
    return (*spec.categorical_value_spec.values, *spec.discrete_value_spec.values)


def _distribution(spec: Message) -> Distribution:
    log = spec.scale_type in {_LOG, _REVERSE_LOG}
    match spec.WhichOneof("parameter_value_spec"):
        case "double_value_spec":
            bounds = spec.double_value_spec
            return FloatDistribution(bounds.min_value, bounds.max_value, log=log)
        case "integer_value_spec":
            bounds = spec.integer_value_spec
            return IntDistribution(bounds.min_value, bounds.max_value, log=log)
        case "categorical_value_spec":
            return CategoricalDistribution(range(len(_choices_of(spec))))
        case "discrete_value_spec":
            # The user has already spaced listed values, so the search is over their indexes.
            return IntDistribution(0, len(_choices_of(spec)) - 1)
        case other:
            raise ValueError(f"a parameter of kind {other!r} should have been refused")


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
