"""A document of another dialect said in our own: the result, and what is collected on the way to it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, json_path

Path = tuple[PathPart, ...]


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A request in our own dialect. `places` pairs its paths with the written ones; none means they are the same.

    `warnings` are what the user should know of a request that is accepted all the same. `region` is the one
    that the document asks for, if any; `$.region` is its place. `yielding` are keys of the document that go,
    with a warning, where the policy refuses them.
    """

    document: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()
    region: str | None = None
    yielding: tuple[str, ...] = ()

    def written_path(self, path: str) -> str:
        """Where the text says what our own document has at `path`."""
        return _moved(path, self.places)

    def own_path(self, path: str) -> str:
        """Where our own document has what the text says at `path`."""
        return _moved(path, {written: own for own, written in self.places.items()})


def _moved(path: str, places: Mapping[str, str]) -> str:
    known = path
    while known not in places:
        cut = max(known.rfind("."), known.rfind("["))
        if cut <= 0:
            return path
        known = known[:cut]
    return places[known] + path[len(known) :]


class Translation:
    """Collects the places, faults and warnings of one document while it is translated."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []
        self.unread: list[Callable[[], Iterable[Fault]]] = []
        """Called at the end, when it is known which keys of each mapping were asked for."""

    def place(self, own: Path, written: Path) -> None:
        """Record that faults of our own path are faults of the written one."""
        self.places[json_path(own)] = json_path(written)

    # Any: whatever else `Fault` takes, each of its own kind.
    def refuse(self, path: Path, problem: str, **said: Any) -> None:
        """`path` is the written one."""
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
            faults=tuple(sorted(self.faults)),
            warnings=tuple(sorted(self.warnings)),
            region=region,
            yielding=yielding,
        )


class OwnDocument:
    """A mapping of our own document while it is written; `path` is its place there."""

    def __init__(
        self, translation: Translation, path: Path = (), content: dict[str, Any] | None = None
    ) -> None:
        self.translation = translation
        self.path = path
        self.content: dict[str, Any] = {} if content is None else content

    def put(self, key: str, value: object, written: Path) -> None:
        """Write the value, unless it is None. Faults of the key are faults of `written` either way."""
        self.translation.place((*self.path, key), written)
        if value is not None:
            self.content[key] = value

    def inner(self, key: str, written: Path, *, there: bool = True) -> Self:
        """A mapping under the key. One that is not `there` is not written; its places are known all the same."""
        inner = type(self)(self.translation, (*self.path, key))
        self.put(key, inner.content if there else None, written)
        return inner
