"""The placeholders of a request, `${name}` or `${name:-default}`, and the values that fill them.

Placeholders are allowed in string values, not in keys. They are filled after the document is parsed, as text inside
that string, and the filled text is not searched for placeholders again. `$${` means a literal `${`.

In `args` and `model_uri`, a request in our own dialect may also use the run's placeholders `${run_id}` and `${trial}`.
These and `$${` stay unchanged there until the job is built (core/requests/placeholders.py); so that a value is not
mistaken for one of them, each `${` in a value becomes `$${` there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import MAX_COLLECTED, Fault, Suggestions, nearest
from trainmaster.orchestrator.core.documents.values import Path, iter_texts, with_strings
from trainmaster.orchestrator.core.requests.placeholders import (
    DEPLOYMENT,
    PLACEHOLDER,
    RUN_ID,
    TRIAL,
    holds_placeholders,
    literal,
    without_deployment,
)

VALUE_MAX_CHARS = 2000
PLACEHOLDERS: Mapping[str, tuple[str, ...]] = {
    "rule": ("id",),
    "firing": ("id", "time", "condition"),
    "data": ("count", "bytes", "since", "watermark", "dirs", "manifest_uri", "newest_uri", "newest_dir_uri"),
    "image": ("uri", "digest", "tag"),
    "alert": ("policy", "incident_id", "summary"),
    "upstream": ("model_name", "run_id", "model_uri"),
    "champion": ("model_uri", "run_id", "value"),
}
"""All placeholders, by subject; docs/reference/rules.md documents each."""
NAMES = tuple(f"{subject}.{name}" for subject, names in PLACEHOLDERS.items() for name in names)

_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, kw_only=True)
class Placeholder:
    """One placeholder: its name, and its default if there is no value."""

    name: str
    default: str | None = None

    def __str__(self) -> str:
        return f"${{{self.name}}}" if self.default is None else f"${{{self.name}:-{self.default}}}"


@dataclass(frozen=True, kw_only=True)
class PlaceholderAt:
    """A placeholder and the path of the value, or key, that contains it. `closed` False: no `}` follows it."""

    path: Path
    placeholder: Placeholder
    closed: bool = True
    in_key: bool = False


def names_about(*subjects: str) -> frozenset[str]:
    return frozenset(name for name in NAMES if name.partition(".")[0] in subjects)


def placeholders_at(document: object) -> Iterator[PlaceholderAt]:
    """Every placeholder in the document's string values, in the order of the text."""
    return (found for found in _iter_placeholders(document) if not found.in_key)


def _iter_placeholders(document: object) -> Iterator[PlaceholderAt]:
    """Every placeholder in values and keys, except the run's placeholders."""
    is_ours = _is_ours(document)
    for path, text, in_key in iter_texts(document):
        is_later = is_ours and holds_placeholders(path) and not in_key
        for match in PLACEHOLDER.finditer(text):
            placed, closed = _placeholder(match), bool(match["end"])
            if match["literal"] is None and not (is_later and placed.name in (RUN_ID, TRIAL)):
                yield PlaceholderAt(path=path, placeholder=placed, closed=closed, in_key=in_key)


def _is_ours(document: object) -> bool:
    # Every request in our own dialect has a cluster, and none in another dialect.
    return isinstance(document, Mapping) and "cluster" in document


def find_placeholders(document: object) -> tuple[Placeholder, ...]:
    """The distinct placeholders of the document."""
    return tuple(dict.fromkeys(found.placeholder for found in placeholders_at(document)))


def _placeholder(match: re.Match[str]) -> Placeholder:
    name, default_mark, default = (match["inside"] or "").partition(":-")
    return Placeholder(name=name, default=default if default_mark else None)


def place_faults(document: object, provided: Iterable[str]) -> list[Fault]:
    """The faults of the document's placeholders; `provided` are the names that can have a value here."""
    possible = [name for name in NAMES if name in set(provided)]
    suggestions = Suggestions()
    faults = (_fault(found, possible, suggestions) for found in _iter_placeholders(document))
    return list(islice((fault for fault in faults if fault is not None), MAX_COLLECTED))


def _fault(placed: PlaceholderAt, possible: Sequence[str], suggestions: Suggestions) -> Fault | None:
    path, placeholder = placed.path, placed.placeholder
    if placed.in_key:
        problem = "placeholders are allowed in values, not in keys"
        return Fault(at=path, problem=problem, value=path[-1], is_key=True)
    if not placed.closed:
        problem, repair = "the placeholder is not closed", "close it, or write $${ for a literal ${"
        return Fault(at=path, problem=problem, value=str(placeholder)[:-1], repair=repair)
    if placeholder.name not in NAMES:
        problem, among = "unknown placeholder", (*NAMES, *DEPLOYMENT)
        repair = nearest(placeholder.name, among, suggestions) or "write $${ for a literal ${"
        return Fault(at=path, problem=problem, value=str(placeholder), among=among, repair=repair)
    if placeholder.name not in possible:
        problem = "none of the rule's conditions can give it a value"
        repair = "remove it, or add the condition that gives it"
        return Fault(at=path, problem=problem, value=str(placeholder), among=possible, repair=repair)
    if placeholder.default is not None and (reason := unfit(placeholder.default)):
        return Fault(at=path, problem=f"the default is {reason}", value=str(placeholder))
    return None


def unfit(value: str) -> str:
    """Why the value cannot fill a placeholder; empty if it can."""
    if len(value) > VALUE_MAX_CHARS:
        return f"longer than {VALUE_MAX_CHARS} characters"
    character = _UNFIT.search(value)
    return f"not plain text: it holds the character {character[0]!r}" if character else ""


def why_unfilled(placeholders: Iterable[Placeholder], values: Mapping[str, str]) -> str:
    """Why these placeholders cannot be filled with these values; empty if they can."""
    for placeholder in placeholders:
        value = values.get(placeholder.name, placeholder.default)
        if value is None:
            default = Placeholder(name=placeholder.name, default="none")
            return f"{placeholder} has no value now; give it a default: {default}"
        if reason := unfit(value):
            hint = "; ${data.manifest_uri} names every object" if placeholder.name == "data.dirs" else ""
            return f"the value of {placeholder} is {reason}{hint}"
    return ""


def filled_request(document: object, values: Mapping[str, str]) -> object:
    """The document with every placeholder filled and, except where the job's build fills again, `$${` as `${`.

    Keys stay unchanged.

    Raises:
        ValueError: a placeholder has no valid value; call `why_unfilled` first.
    """
    if reason := why_unfilled(find_placeholders(document), values):
        raise ValueError(reason)
    is_ours = _is_ours(document)

    def text(found: re.Match[str], *, later: bool) -> str:
        placeholder = _placeholder(found)
        if found["literal"] is not None or (later and placeholder.name in (RUN_ID, TRIAL)):
            return found[0] if later else "${"
        value = values.get(placeholder.name, placeholder.default or "")
        return str(literal(value)) if later else value

    def text_of(each: str, path: Path) -> str:
        later = is_ours and holds_placeholders(path)
        found = PLACEHOLDER.sub(partial(text, later=later), each)
        # The request is read again: no value, and no text that was written as one, may become a placeholder there.
        return without_deployment(found) if is_ours and not later else found

    return with_strings(document, text_of)
