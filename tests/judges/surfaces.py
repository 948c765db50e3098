"""What a service's table of honoured names leaves out of the discovery document, or has beyond it."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tests.judges.discovery import api, filled
from trainstack.surface import Surface


def gaps(
    surface: Surface,
    name: str,
    *,
    methods: Mapping[str, str] | None = None,
    schemas: str = "",
    own: Collection[str] = (),
) -> list[str]:
    """A line for each parameter and field that only one of the table and the document `name` has.

    Args:
        surface: the table.
        name: the document.
        methods: the document's name of each method of the table; without it, as `named`.
        schemas: what the document's names of bodies begin with.
        own: names that the table may have beyond the document.
    """
    document = api(name).document
    faults = list(_difference("parameters", surface.parameters.kinds.keys() - own, document["query"]))
    for method, described in (methods or named(surface, name)).items():
        parameters = document["methods"][described]["parameters"]
        queried = {key for key, each in parameters.items() if each.get("location") != "path"}
        faults += _difference(method, surface.methods[method].kinds.keys() - own, queried)
    for resource, names in surface.bodies.items():
        properties = document["schemas"][schemas + resource]["properties"]
        paths = set(_paths(document["schemas"], properties, names.split))
        known = {path.rsplit(".", cut)[0] for path in paths for cut in range(path.count(".") + 1)}
        listed = {path for path in paths if names.kind_of(path)} | (names.kinds.keys() - known - set(own))
        faults += _difference(resource, listed, paths)
    return faults


def named(surface: Surface, name: str) -> dict[str, str]:
    """The document's name of each method of a table whose names lack a beginning `projects.`."""
    known = api(name).document["methods"]
    return {method: method if method in known else f"projects.{method}" for method in surface.methods}


def calls(surface: Surface, name: str, *, names: str = "p1") -> dict[str, tuple[str, str]]:
    """The verb and path of each method of such a table, with `names` for all that the path leaves open."""
    known = api(name).document["methods"]
    return {
        method: (known[full]["verb"], filled(known[full]["path"], names))
        for method, full in named(surface, name).items()
    }


def _difference(place: str, listed: Collection[str], described: Collection[str]) -> Iterator[str]:
    for name in sorted(set(listed) ^ set(described)):
        yield f"{place}: {name} is only in the {'table' if name in listed else 'discovery document'}"


def _paths(
    schemas: Mapping[str, Any], properties: Mapping[str, Any], split: frozenset[str], above: str = ""
) -> Iterator[str]:
    """The fields of a resource; those of a field that the table splits instead of that field."""
    for name, field in properties.items():
        path, inner = f"{above}{name}", field.get("items", field)
        inner = schemas[inner["$ref"]] if "$ref" in inner else inner
        if path in split and "properties" in inner:
            yield from _paths(schemas, inner["properties"], split, f"{path}.")
        else:
            yield path
