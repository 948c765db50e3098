"""The search space of a StudySpec: parameters, their values, and which are active together.

Source: the comments of google.cloud.aiplatform.v1.StudySpec, read 2026-11.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

# protobuf's generated messages have no types of their own.
Message = Any

MATCH = 1e-10
"""How near a DISCRETE value of a condition must be to its parent's."""

Value = float | int | str
"""A float for DOUBLE and DISCRETE, an int for INTEGER, text for CATEGORICAL."""


class Scale(Enum):
    """How a range is looked at, with the API's numbers; an unset scale is linear."""

    LINEAR = 1
    LOG = 2
    REVERSE_LOG = 3


@dataclass(frozen=True, kw_only=True)
class Double:
    """Every number from `low` to `high`, both included."""

    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Integer:
    """Every whole number from `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One of `values`: text for CATEGORICAL, rising floats for DISCRETE."""

    values: tuple[Value, ...]
    ordered: bool


Domain = Double | Integer | Choice


@dataclass(frozen=True, kw_only=True)
class Child:
    """A parameter that is there only when its parent took one of `parent_values`."""

    parent_values: frozenset[Value]
    parameter: "Parameter"


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter. `path` is unique in the study; `parameter_id` may be repeated among siblings' children."""

    parameter_id: str
    path: str
    domain: Domain
    scale: Scale = Scale.LINEAR
    children: tuple[Child, ...] = ()

    def below(self, value: Value) -> tuple["Parameter", ...]:
        """The children that are active when this parameter has `value`."""
        return tuple(child.parameter for child in self.children if value in child.parent_values)


def space_of(study: Message) -> tuple[Parameter, ...]:
    """The parameters of a checked StudySpec, in its order."""
    return tuple(_parameter(spec, str(at)) for at, spec in enumerate(study.parameters))


def grid(parameters: Sequence[Parameter]) -> Iterator[dict[str, Value]]:
    """Every point of a space without DOUBLE, the last parameter changing fastest."""
    if not parameters:
        yield {}
        return
    first, *rest = parameters
    for value in _listed(first.domain):
        for below in grid(first.below(value)):
            for others in grid(rest):
                yield {first.parameter_id: value, **below, **others}


def flag(parameter_id: str, value: Value) -> str:
    """`--name=value` as a trial's program gets it; a DISCRETE 128 is `128.0`."""
    return f"--{parameter_id}={value}"


def _listed(domain: Domain) -> Sequence[Value]:
    match domain:
        case Choice(values=values):
            return values
        case Integer(low=low, high=high):
            return range(low, high + 1)
        case Double():
            raise ValueError("a DOUBLE parameter has no grid; the study should have been refused")


def _parameter(spec: Message, path: str) -> Parameter:
    children = tuple(
        Child(
            parent_values=_parent_values(spec, child),
            parameter=_parameter(child.parameter_spec, f"{path}.{at}"),
        )
        for at, child in enumerate(spec.conditional_parameter_specs)
    )
    return Parameter(
        parameter_id=spec.parameter_id,
        path=path,
        domain=_domain(spec),
        scale=Scale(spec.scale_type or Scale.LINEAR.value),
        children=children,
    )


def _parent_values(spec: Message, child: Message) -> frozenset[Value]:
    asked = getattr(child, child.WhichOneof("parent_value_condition")).values
    if spec.WhichOneof("parameter_value_spec") != "discrete_value_spec":
        return frozenset(asked)
    return frozenset(value for value in spec.discrete_value_spec.values if is_among(value, asked))


def is_among(value: float, values: Iterable[float]) -> bool:
    """Whether a DISCRETE value is one of `values`, as near as the service looks at them."""
    return any(abs(value - other) <= MATCH for other in values)


def _domain(spec: Message) -> Domain:
    match spec.WhichOneof("parameter_value_spec"):
        case "double_value_spec":
            return Double(low=spec.double_value_spec.min_value, high=spec.double_value_spec.max_value)
        case "integer_value_spec":
            return Integer(low=spec.integer_value_spec.min_value, high=spec.integer_value_spec.max_value)
        case "categorical_value_spec":
            return Choice(values=tuple(spec.categorical_value_spec.values), ordered=False)
        case "discrete_value_spec":
            return Choice(values=tuple(spec.discrete_value_spec.values), ordered=True)
        case other:
            raise ValueError(f"a parameter of kind {other!r} should have been refused")
