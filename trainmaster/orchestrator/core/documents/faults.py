"""The faults of a document, each with its path, the value found, what is allowed, and the repair.

Values are quoted on one line, of bounded length, in the notation of YAML and JSON.
"""

import difflib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from typing import Any, Self

from trainmaster.orchestrator.core.documents.places import TextPlace

FOUND_MAX_CHARS = 200
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_READ_DIFFERENTLY = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that YAML 1.1 does not read as strings, or that some of its readers do not."""


def shown(value: object) -> str:
    """The value as a report quotes it: `true`, `null`, `[a, 1]`, `{a: 1}`; text in quotes, control characters escaped.

    Cut to FOUND_MAX_CHARS. The work is bounded too: of a large value only the beginning is read.
    """
    text = ""
    for piece in (_in_quotes(value),) if isinstance(value, str) else _pieces(value):
        text += piece
        if len(text) > FOUND_MAX_CHARS:
            break
    return cut(text, FOUND_MAX_CHARS)


def plain(text: str) -> str:
    """The text as `shown` writes it, without quotes: always one line."""
    return shown(text)[1:-1]


def quote_it(text: str) -> str:
    """The repair of a value that YAML or JSON reads as no string; `text` is how its author wrote it."""
    is_short = len(text) <= FOUND_MAX_CHARS
    return f'quote it: "{plain(text)}"' if is_short else "quote it"


def cut(text: str, most_chars: int) -> str:
    """The text, or the beginning of a longer one and `…`, which makes `most_chars` in all."""
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}…"


def _in_quotes(text: str) -> str:
    return repr(text[: FOUND_MAX_CHARS + 1])


def _pieces(value: object) -> Iterator[str]:
    """The value's text in parts, each of bounded length."""
    match value:
        case None | bool():
            yield _CONSTANTS[value]
        case str():
            begin = value[: FOUND_MAX_CHARS + 1]
            is_plain = _WORD.fullmatch(begin) and value.lower() not in _READ_DIFFERENTLY
            yield begin if is_plain else _in_quotes(value)
        case bytes():
            yield f"bytes {value[:FOUND_MAX_CHARS].hex(' ')}"
        case Mapping():
            parts = ((f"{''.join(_pieces(str(key)))}: ", part) for key, part in value.items())
            yield from _pieces_in("{}", parts)
        case list() | tuple():
            yield from _pieces_in("[]", (("", part) for part in value))
        case _:
            yield repr(value)


def _pieces_in(brackets: str, parts: Iterable[tuple[str, object]]) -> Iterator[str]:
    yield brackets[0]
    for number, (key, part) in enumerate(parts):
        yield f", {key}" if number else key
        yield from _pieces(part)
    yield brackets[1]


_CONSTANTS = {None: "null", True: "true", False: "false"}

MAX_FAULTS = 200
"""Of a report: it must stay readable, and a small file can hold a fault in every fourth byte."""
MAX_COLLECTED = 2000
"""Of one check, which stops looking for more: far more than a report lists, so that their number tells the author enough."""
TEXT_MAX_CHARS = 2000
"""Of each text of a reported fault: a path has every key above its value, each of up to 1,000 characters."""
KEYS_SHOWN = 10
"""Of the keys that a mapping may have, where one is unknown."""
HINT = "did you mean"
LIKENESS = 0.6
SUGGESTIONS_MOST = 250_000
"""Of one check, in products of the lengths of two words that are compared: up to 0.1 s."""
PathPart = str | int
_NOTHING = object()
_SEPARATOR = re.compile(r"[.\[]")
_REPORTED = ("path", "problem", "found", "allowed", "repair")


@dataclass(frozen=True, kw_only=True, order=True)
class Fault:
    """One thing to correct.

    `path` is a JSONPath from the document's root (`$.cluster.workers.machine`, `$.args[2]`); `at` gives its parts.
    `found` is text, empty if something is absent; `value` is the value itself, which `shown` quotes.
    `allowed` is text; `among` are the allowed values, which are listed.
    `meant` is the path of the absent key of which an unknown one is most likely a misspelling.
    `is_key`: the key at the path is wrong, not its value. `is_secret`: no report may quote the value.
    `place` is where it is in the user's text, once `placed` has looked for it. `source` is the option that gave the value,
    if the text did not, or the script that has the fault, and then the place.
    Each text stays on one line: unprintable characters, also in quotes from the document, are escaped.
    """

    path: str = ""
    problem: str
    found: str = ""
    allowed: str = ""
    repair: str = ""
    meant: str = field(default="", compare=False)
    is_key: bool = field(default=False, compare=False)
    is_secret: bool = field(default=False, compare=False)
    place: TextPlace | None = field(default=None, compare=False)
    source: str = field(default="", compare=False)
    at: InitVar[Iterable[PathPart] | None] = None
    value: InitVar[object] = _NOTHING
    among: InitVar[Iterable[object] | None] = None

    def __post_init__(
        self, at: Iterable[PathPart] | None, value: object, among: Iterable[object] | None
    ) -> None:
        texts = {name: text for name, text in vars(self).items() if isinstance(text, str)}
        texts["path"] = self.path if at is None else json_path(at)
        texts["found"] = self.found if value is _NOTHING else shown(value)
        texts["allowed"] = self.allowed if among is None else listed(among) or "none"
        for name, text in texts.items():
            chars = (char if char.isprintable() else repr(char)[1:-1] for char in text)
            printable = text if text.isprintable() else "".join(chars)
            object.__setattr__(self, name, printable)

    @property
    def document(self) -> dict[str, object]:
        """The fault as an entry of a report, without empty fields; long texts are cut."""
        texts = {name: cut(getattr(self, name), TEXT_MAX_CHARS) for name in _REPORTED}
        place = {} if self.place is None or self.source else self.place.document
        return {**{name: text for name, text in texts.items() if text}, **place}

    @property
    def is_hint(self) -> bool:
        """Whether the repair is a suggestion, which helps more than a list of everything allowed."""
        return self.repair.startswith(HINT) and self.repair.endswith("?")

    def moved(self, moved_path: Callable[[str], str]) -> Self:
        """The fault at the path that `moved_path` gives for another document."""
        meant = moved_path(self.meant) if self.meant else ""
        return replace(self, path=moved_path(self.path), meant=meant)

    def __str__(self) -> str:
        parts = [f"{self.path}: {self.problem}"]
        if self.found:
            parts.append(f"found {self.found}")
        allowed = f"allowed: {self.allowed}" if self.allowed else ""
        parts += (self.repair, allowed) if self.is_hint else (allowed, self.repair)
        return "; ".join(filter(None, parts))


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A faulty request, rule or order: every fault, sorted by path; of more than MAX_FAULTS the first, and how many there were."""

    faults: tuple[Fault, ...]

    def __post_init__(self) -> None:
        more = len(self.faults) - MAX_FAULTS
        if more > 1:  # one more takes the place of the note, which a refusal made of a refusal keeps
            count = f"at least {more}" if len(self.faults) >= MAX_COLLECTED else str(more)
            rest = Fault(path="$", problem=f"{count} more faults are not listed", repair="fix these first")
            object.__setattr__(self, "faults", (*self.faults[:MAX_FAULTS], rest))


# Any: the other arguments of `Fault`, of different types.
def refusal_of(problem: str, *, path: str = "$", **said: Any) -> Refused:
    """The refusal for one fault, of the whole document unless there is a `path`."""
    return Refused(faults=(Fault(path=path, problem=problem, **said),))


class Suggestions:
    """Similar words for the misspelt ones of one check, while its budget lasts: the first faults are those reported.

    Comparing two words takes time up to their lengths' product, and far more than all else about a fault.
    """

    def __init__(self) -> None:
        self._left = SUGGESTIONS_MOST

    def find(self, word: str, known: Sequence[str]) -> str:
        """The known word that is most similar; empty if none is similar, or the budget is spent."""
        self._left -= len(known)
        if self._left < 0:
            return ""
        comparable = [name for name in known if 2 * min(len(word), len(name)) >= LIKENESS * len(word + name)]
        self._left -= len(word) * sum(map(len, comparable))
        close = difflib.get_close_matches(word, comparable, n=1, cutoff=LIKENESS) if self._left >= 0 else []
        return close[0] if close else ""


def is_within(path: str, above: str) -> bool:
    """Whether the one path is the other, or of something in it."""
    return path == above or path.startswith((f"{above}.", f"{above}["))


def first_of_each_place(groups: Iterable[Iterable[Fault]]) -> list[Fault]:
    """The faults of every group but those of places that an earlier group names."""
    faults: list[Fault] = []
    for group in groups:
        reported = {fault.path for fault in faults}
        faults += [fault for fault in group if fault.path not in reported]
    return faults


def without_echoes(faults: Iterable[Fault]) -> list[Fault]:
    """The faults except those at or below an absent key of which an unknown one is most likely a misspelling."""
    faults = list(faults)
    meant = {fault.meant for fault in faults if fault.meant}
    if not meant:
        return faults
    return [fault for fault in faults if meant.isdisjoint(_path_and_above(fault.path))]


def _path_and_above(path: str) -> Iterator[str]:
    yield path
    for separator in _SEPARATOR.finditer(path):
        yield path[: separator.start()]


def unknown_key(
    key: str,
    *,
    parents: Iterable[PathPart],
    known: Iterable[str],
    present: Container[str],
    suggestions: Suggestions,
    problem: str = "",
) -> Fault:
    """The fault of a key that is none of the `known` keys of its mapping; `present` are those that it has."""
    parents, known = tuple(parents), sorted(known)
    near = suggestions.find(key, [name for name in known if name not in present])
    return Fault(
        at=(*parents, key),
        problem=problem or f"unknown key {shown(key)}",
        found=shown(key) if problem else "",
        allowed=listed(known, KEYS_SHOWN) or "none",
        repair=f"{HINT} {near!r}?" if near else nearest(key, known, suggestions),
        meant=json_path((*parents, near)) if near else "",
        is_key=True,
    )


def json_path(parts: Iterable[PathPart]) -> str:
    """`$.cluster.workers[0]`; a key that is not a plain word is quoted: `$.labels['a b']`."""
    return "$" + "".join(map(json_step, parts))


def json_step(part: PathPart) -> str:
    """What a key or an index adds to the path of its mapping or list."""
    if isinstance(part, int):
        return f"[{part}]"
    return f".{part}" if part.isidentifier() else f"[{part!r}]"


def nearest(word: str, known: Sequence[str], suggestions: Suggestions | None = None) -> str:
    """`did you mean 'machine'?`, or empty if no known word is similar. A loop passes its `suggestions`."""
    return hint((suggestions or Suggestions()).find(word[:FOUND_MAX_CHARS], known))


def hint(near: str) -> str:
    """The repair that suggests this word; empty without one."""
    return f"{HINT} {near!r}?" if near else ""


def listed(values: Iterable[object], most: int = 24) -> str:
    """The values as a report lists them; long ones are cut, and a long list is too and says how long it was."""
    values = list(values)
    words = ", ".join(cut(str(value), FOUND_MAX_CHARS) for value in values[:most])
    return words if len(values) <= most else f"{words}, … ({len(values)} in all)"
