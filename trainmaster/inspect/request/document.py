"""Getting at members of a parsed document, whose keys may be spelled in camelCase or snake_case."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.inspect.request.request import Kind, Parameter

Document = Mapping[str, Any]  # Any: parsed YAML or JSON


def member(document: object, name: str) -> Any:  # Any: parsed YAML or JSON
    """The member `name`, written in snake_case; None where it is missing or `document` is no mapping."""
    if not isinstance(document, Mapping):
        return None
    return document.get(name, document.get(_camel(name)))


def path(document: object, *names: str) -> Any:  # Any: parsed YAML or JSON
    for name in names:
        document = member(document, name)
    return document


def listed(value: object) -> Sequence[Any]:  # Any: parsed YAML or JSON
    return value if isinstance(value, list) else []


def count(value: object) -> int:
    """A whole number, written as text too, as the services write 64-bit numbers; anything else is 0."""
    return int(str(value)) if str(value).isdecimal() else 0


def texts(value: object) -> tuple[str, ...]:
    return tuple(str(item) for item in listed(value))


def variables(value: object) -> dict[str, str]:
    """An environment, as a mapping or as a list of `name` and `value`."""
    if isinstance(value, Mapping):
        return {str(name): str(given) for name, given in value.items()}
    return {str(member(item, "name")): str(member(item, "value")) for item in listed(value)}


def parameter(name: object, kind: str, *, low: object, values: Sequence[object]) -> Parameter:
    """A parameter with one of its legal values, in the spelling in which a trial is given it."""
    first = values[0] if values else low
    match Kind(kind):
        case Kind.DISCRETE | Kind.DOUBLE:
            sample = str(float(str(first or 0)))
        case Kind.INTEGER:
            sample = str(int(float(str(first or 0))))
        case Kind.CATEGORICAL:
            sample = str(first)
    return Parameter(name=str(name), kind=Kind(kind), sample=sample)


def snake_case(name: str) -> str:
    """`workerPoolSpecs` as `worker_pool_specs`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _camel(name: str) -> str:
    return re.sub(r"_(\w)", lambda found: found[1].upper(), name)
