"""What the stack honours of a service's methods: each query parameter and each field of a body, by a table.

A table is a file `surface.toml` beside its service. Names are those of Google's discovery document; a field is a path
from its resource, `iamConfiguration.publicAccessPrevention`, through lists too. A field stands for everything below it
that the table does not list itself.

    [parameters]                      # those that every method takes
    honoured = ["alt"]
    without_effect = ["prettyPrint", "quotaUser"]

    [methods."objects.list"]
    honoured = ["prefix", "delimiter"]
    refused = ["filter"]

    [bodies.Object]
    honoured = ["metadata", "storageClass"]
    refused = ["retention"]
    without_effect = ["id", "kind"]   # in the service too, such as what only it writes

A name that the table does not have is refused too: the service does not know it either. A refused name whose value asks
for nothing (false, zero, an empty text, list or object) is accepted.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MAX_FAULTS = 20
"""Of one request. A request with more is refused with these."""
_ACCEPTED = ("honoured", "without_effect")
_KINDS = (*_ACCEPTED, "refused")


@dataclass(frozen=True)
class Names:
    """The parameters of one method, or the fields of one resource."""

    kinds: Mapping[str, str] = field(default_factory=dict)
    split: frozenset[str] = frozenset()
    """Fields of which the table lists something inside."""

    def kind_of(self, path: str) -> str:
        """`honoured`, `refused`, `without_effect`, or "" for what neither the table nor a field above it lists."""
        while path:
            if kind := self.kinds.get(path):
                return kind
            path = path.rpartition(".")[0]
        return ""


@dataclass(frozen=True)
class Surface:
    """The table of one service."""

    parameters: Names
    methods: Mapping[str, Names]
    bodies: Mapping[str, Names]

    def query_faults(self, method: str, query: Mapping[str, str]) -> list[str]:
        """A sentence for each query parameter that the method does not honour, at most MAX_FAULTS."""
        own = self.methods[method].kinds
        common = self.parameters.kinds
        faults = []
        for name, value in query.items():
            kind = own.get(name) or common.get(name, "")
            if kind in _ACCEPTED or (kind and value in ("", "false", "False", "0")):
                continue
            faults.append(_fault(f"the parameter {name}", kind))
        return faults[:MAX_FAULTS]

    def body_faults(self, resource: str, body: Mapping[str, Any]) -> list[str]:
        """A sentence for each field of the body that is not honoured, at most MAX_FAULTS."""
        faults: list[str] = []
        for path, kind in _not_honoured(self.bodies[resource], body, ""):
            fault = _fault(f"{resource}.{path}", kind)
            if fault not in faults:
                faults.append(fault)
            if len(faults) == MAX_FAULTS:
                break
        return faults


def load_surface(path: Path) -> Surface:
    """Read a table.

    Raises:
        ValueError: a name is in two lists, or a list has another name than the three.
    """
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return Surface(
        parameters=_names(tables["parameters"], "parameters"),
        methods={name: _names(table, name) for name, table in tables["methods"].items()},
        bodies={name: _names(table, name) for name, table in tables["bodies"].items()},
    )


def _names(table: Mapping[str, list[str]], place: str) -> Names:
    if unknown := table.keys() - set(_KINDS):
        raise ValueError(f"{place}: unknown lists {sorted(unknown)}; expected {', '.join(_KINDS)}")
    kinds: dict[str, str] = {}
    for kind, names in table.items():
        for name in names:
            if name in kinds:
                raise ValueError(f"{place}: {name} is in {kinds[name]} and in {kind}")
            kinds[name] = kind
    parts = (name.split(".") for name in kinds)
    return Names(kinds, frozenset(".".join(path[:end]) for path in parts for end in range(1, len(path))))


def _not_honoured(names: Names, value: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    """The paths below `above` that are not honoured, with what the table says. Bodies are at most 100 levels deep."""
    for key, inner in value.items():
        path = f"{above}{key}"
        kind = names.kind_of(path)
        if path in names.split and isinstance(inner, dict | list):
            for part in inner if isinstance(inner, list) else [inner]:
                if isinstance(part, dict):
                    yield from _not_honoured(names, part, f"{path}.")
        elif kind not in _ACCEPTED and not (kind and _asks_for_nothing(inner)):
            yield path, kind


def _asks_for_nothing(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_asks_for_nothing, value.values()))
    if isinstance(value, list):
        return all(map(_asks_for_nothing, value))
    return value in (None, False, "", 0, "0")


def _fault(name: str, kind: str) -> str:
    if kind:
        return f"{name} is not imitated by the local stack"
    return f"{name} is unknown"
