"""What a service's table of honoured names leaves out of the discovery document, or has beyond it."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.judges.discovery import api
from trainstack.surface import Surface


def gaps(surface: Surface, name: str, *, prefix: str = "projects.") -> list[str]:
    """A line for each parameter and field that only one of the table and the document `name` has.

    Methods in the table lack the `prefix` of the document's.
    """
    document = api(name).document
    faults = list(_difference("parameters", surface.parameters.kinds, document["query"]))
    for method, names in surface.methods.items():
        described = document["methods"].get(f"{prefix}{method}") or document["methods"][method]
        queried = {key for key, each in described["parameters"].items() if each.get("location") != "path"}
        faults += _difference(method, names.kinds, queried)
    for resource, names in surface.bodies.items():
        described = set(_paths(document["schemas"], resource, names.split, ""))
        faults += _difference(resource, names.kinds, described)
    return faults


def _difference(place: str, listed: Any, described: Any) -> Iterator[str]:
    for name in sorted(set(listed) ^ set(described)):
        yield f"{place}: {name} is only in the {'table' if name in listed else 'discovery document'}"


def _paths(schemas: Mapping[str, Any], resource: str, split: frozenset[str], above: str) -> Iterator[str]:
    """The fields of a resource; those of a field that the table splits instead of that field."""
    for name, field in schemas[resource]["properties"].items():
        path = f"{above}{name}"
        inner = field.get("$ref") or field.get("items", {}).get("$ref")
        if path in split and inner:
            yield from _paths(schemas, inner, split, f"{path}.")
        else:
            yield path
