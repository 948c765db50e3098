"""The search space of a StudySpec: parameters, their values, and which are active together.

Source: the comments of google.cloud.aiplatform.v1.StudySpec, read 2026-11.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from trainstack.jobs.resource.validation import Message
from trainstack.tuning.trial import Value

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
    """The parameters of a validated StudySpec, in its order."""
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
