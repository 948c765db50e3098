"""The translation of a document into our own dialect, with its paths, faults and warnings."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from trainmaster.orchestrator.core.documents.faults import (
    MAX_COLLECTED,
    Fault,
    PathPart,
    Suggestions,
    json_path,
)

Path = tuple[PathPart, ...]


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

    def __init__(
        self, translation: Translation, path: Path = (), content: dict[str, Any] | None = None
    ) -> None:
        self.translation = translation
        self.path = path
        self.content: dict[str, Any] = {} if content is None else content

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
