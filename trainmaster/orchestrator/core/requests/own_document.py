"""The translation of a document into our own dialect, with its paths, faults and warnings.

Misspelt keys of a document in our own dialect are read as those that were meant, so that what is below them is checked too.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from trainmaster.orchestrator.core.documents.faults import (
    MAX_COLLECTED,
    Fault,
    Suggestions,
    json_path,
    shown,
    unknown_key,
)
from trainmaster.orchestrator.core.documents.values import Path


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A request in our own dialect. `places` maps its paths to the written ones; paths without an entry are the same.

    `warnings` do not prevent acceptance. `region` is the region that the document asks for, if any; its path is
    `$.region`. `yielding` are keys of the document that are removed, with a warning, if the policy refuses them.
    """

    document: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    region: str | None = None
    yielding: tuple[str, ...] = ()

    def written_path(self, path: str) -> str:
        """The path in the text of what our own document has at `path`."""
        return _moved_path(path, self.places)

    def own_path(self, path: str) -> str:
        """The path in our own document of what the text has at `path`."""
        return _moved_path(path, self._own_places)

    @cached_property
    def _own_places(self) -> Mapping[str, str]:
        return {written: own for own, written in self.places.items()}


def _moved_path(path: str, places: Mapping[str, str]) -> str:
    known = path
    while known not in places:
        cut = max(known.rfind("."), known.rfind("["))
        if cut <= 0:
            return path
        known = known[:cut]
    return places[known] + path[len(known) :]


class Translation:
    """Collects the paths, faults and warnings of one document during its translation."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self.suggestions = Suggestions()
        self.unread: list[Callable[[], Iterable[Fault]]] = []
        """Called at the end, when it is known which keys of each mapping were read."""

    def place(self, own: Path, written: Path) -> None:
        """Report faults at our own path at the written path."""
        self.places[json_path(own)] = json_path(written)

    # Any: the other arguments of `Fault`, of different types.
    def refuse(self, path: Path, problem: str, **said: Any) -> None:
        """Add a fault at the written `path`."""
        self.faults.append(Fault(at=path, problem=problem, **said))

    def warn(self, path: Path, problem: str, **said: Any) -> None:
        self.warnings.append(Fault(at=path, problem=problem, **said))

    def result(
        self, document: Mapping[str, Any], *, region: str | None = None, yielding: tuple[str, ...] = ()
    ) -> Translated:
        for faults in self.unread:
            self.faults += faults()
        return Translated(
            document=document,
            places=self.places,
            faults=tuple(sorted(self.faults)[:MAX_COLLECTED]),
            warnings=tuple(sorted(self.warnings)),
            region=region,
            yielding=yielding,
        )


class OwnDocument:
    """A mapping of the project's dialect under construction; `path` is its path in the document."""

    def __init__(self, translation: Translation, path: Path = ()) -> None:
        self.translation = translation
        self.path = path
        self.content: dict[str, Any] = {}

    def put(self, key: str, value: object, written: Path) -> None:
        """Write the value unless it is None. Faults of the key are reported at `written` in both cases."""
        self.translation.place((*self.path, key), written)
        if value is not None:
            self.content[key] = value

    def inner(self, key: str, written: Path, *, there: bool = True) -> Self:
        """A mapping under the key. If it is not `there`, it is not written, but its paths are recorded."""
        inner = type(self)(self.translation, (*self.path, key))
        self.put(key, inner.content if there else None, written)
        return inner

    def member(self, key: str, index: int, written: Path) -> Self:
        """A mapping at the end of the list under the key."""
        member = type(self)(self.translation, (*self.path, key, index))
        self.translation.place(member.path, written)
        self.content.setdefault(key, []).append(member.content)
        return member


UNKNOWN_MOST = 10
"""Unknown keys of one mapping; one with more is something else than a misspelt request."""
_CLUSTER, _SCRIPT = "cluster", "script"


def with_meant_keys(own: Translated, schema: Mapping[str, Any]) -> Translated:
    """The request with each misspelt key, of a part of the request or of a role, as the key that was meant.

    Keys that are not indented below their own, empty mapping are in it. The misspelt keys are among the result's
    faults; all other faults have the places of the text. A key is read as another one only if its value is a mapping, or
    of a script a text, and the other key is absent and the only one that is similar; the schema reports the rest.
    """
    notes = Translation()
    document = _with_keys_meant(own.document, schema, schema, notes, here=(), written=())
    if isinstance(cluster := document.get(_CLUSTER), Mapping):
        written = next((key for key in own.document if own.document[key] is cluster), _CLUSTER)
        part = schema["properties"][_CLUSTER]
        cluster = _with_keys_meant(cluster, part, schema, notes, here=(_CLUSTER,), written=(written,))
        document = {**document, _CLUSTER: cluster}
    if not notes.faults:
        return own
    return replace(own, document=document, places=notes.places, faults=(*own.faults, *notes.faults))


# Any: JSON Schemas, and values of a document that no schema has validated.
def _with_keys_meant(
    mapping: Mapping[str, Any],
    schema: Mapping[str, Any],
    whole: Mapping[str, Any],
    notes: Translation,
    *,
    here: Path,
    written: Path,
) -> Mapping[str, Any]:
    """The mapping at `here`, which the text has at `written`, with its unknown keys where and as they were meant."""
    known, found, above = schema["properties"], dict[str, Any](), ""
    if not 0 < sum(key not in known for key in mapping) <= UNKNOWN_MOST:
        return mapping
    for key, value in mapping.items():
        if key in known:
            above = key if value is None else above
        elif above and key in _allowed_below(known[above], whole):
            found[above] = {**(found[above] or {}), key: value}
            notes.place((*here, above, key), (*written, key))
            repair = f"indent it: it belongs below {above}"
            notes.refuse((*written, key), f"unknown key {shown(key)}", repair=repair, is_key=True)
            continue
        found[key] = value
    meant = {
        key: _key_meant(key, written, known, found, notes.suggestions)
        for key, value in found.items()
        if key not in known and isinstance(value, Mapping | str) and key not in schema.get("misplaced", ())
    }
    is_of_kind = {key: isinstance(found[key], Mapping) or near == _SCRIPT for key, (near, _) in meant.items()}
    counts = Counter(near for key, (near, _) in meant.items() if is_of_kind[key])
    names: dict[str, str] = {}
    for key, (near, fault) in meant.items():
        if near and is_of_kind[key] and counts[near] == 1:
            names[key] = near
            notes.place((*here, near), (*written, key))
            notes.faults.append(fault)
    return {names.get(key, key): value for key, value in found.items()}


# Any: JSON Schemas.
def _allowed_below(schema: Mapping[str, Any], whole: Mapping[str, Any]) -> Collection[str]:
    """The keys that a mapping of the schema may have."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    properties: Mapping[str, Any] = (whole["$defs"][name] if name else schema).get("properties", {})
    return properties.keys()


def _key_meant(
    key: str, written: Path, known: Collection[str], present: Mapping[str, Any], suggestions: Suggestions
) -> tuple[str, Fault]:
    """The only absent key that is similar, or an empty string; and the fault of the key."""
    fault = unknown_key(key, parents=written, known=known, present=present, suggestions=suggestions)
    absent = [name for name in known if name not in present]
    near = suggestions.find(key, absent)
    return "" if suggestions.find(key, [name for name in absent if name != near]) else near, fault
