"""A page of a listing: prefix, delimiter, offsets and globs over names in UTF-8 byte order."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from trainstack.patterns import MAX_CHARS, Pattern, PatternError
from trainstack.storage.objects.errors import invalid
from trainstack.storage.objects.names import after
from trainstack.storage.objects.records import ObjectRecord

MAX_RESULTS = 1000
GLOB_MAX_SIZE = 10_000
"""Of its program. The worst name of 1024 bytes then takes 50 ms."""
STEPS_PER_PAGE = 20_000_000
"""Of matching a glob, about 0.1 s. A page may have fewer items than the client expects, and still another after it."""
_WILDCARDS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_WIDEST = len("[^/]*") + 1
_STEPS_PER_NAME = 3000  # of reading an object's record, in instructions of a pattern
_ROWS_PER_SCAN = 1000
_ROWS_PER_GROUP = 64  # with a delimiter, most rows of a scan may be skipped

Scan = Callable[[str, str, int], list[ObjectRecord]]
"""Objects from a name up to but not including another (empty: no end), at most that many, in order."""


@dataclass(frozen=True, kw_only=True)
class ListQuery:
    """What to list. `resume` is the first position of the page; empty strings mean "no limit".

    With `generations`, all that are soft-deleted, or all that are not.
    """

    prefix: str = ""
    delimiter: str = ""
    resume: str = ""
    start_offset: str = ""
    end_offset: str = ""
    max_results: int = MAX_RESULTS
    trailing_delimiter: bool = False
    glob: str = ""
    generations: bool = False
    soft_deleted: bool = False


@dataclass
class ObjectPage:
    """Items and prefixes, each in order; `resume` is empty on the last page."""

    items: list[ObjectRecord] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    resume: str = ""


def list_page(scan: Scan, query: ListQuery) -> ObjectPage:
    """The page that starts at `query.resume`. Costs one scan per common prefix, not per object below it.

    With a glob, it ends after STEPS_PER_PAGE in any case.
    """
    page = ObjectPage()
    pattern = glob_pattern(query.glob) if query.glob else None
    prefixes = (query.prefix, _literal_prefix(query.glob))
    start = max(*prefixes, query.start_offset, query.resume)
    ends = [end for end in (*(after(prefix) for prefix in prefixes if prefix), query.end_offset) if end]
    end = min(ends, default="")
    steps = 0
    rows_wanted = _ROWS_PER_GROUP if query.delimiter else _ROWS_PER_SCAN
    if not query.delimiter and not pattern:
        rows_wanted = min(rows_wanted, query.max_results + 1)  # one more shows where the next page begins
    while True:
        rows = scan(start, end, rows_wanted)
        for stored in rows:
            if pattern:
                if steps > STEPS_PER_PAGE:
                    page.resume = _position(stored, query)
                    return page
                steps += _STEPS_PER_NAME + pattern.size * len(stored.name)
                if not pattern.matches(stored.name):
                    continue
            if len(page.items) + len(page.prefixes) >= query.max_results:
                page.resume = _position(stored, query)
                return page
            group = _group(stored.name, query)
            if not group or (group == stored.name and query.trailing_delimiter):
                page.items.append(stored)
            if group:
                page.prefixes.append(group)
                start = after(group)
                break
        else:
            if len(rows) < rows_wanted:
                return page
            start = _position(rows[-1], query, after=1) if query.generations else rows[-1].name + "\0"


def _position(stored: ObjectRecord, query: ListQuery, *, after: int = 0) -> str:
    """Where a scan begins with this record, or `after` its generation: at its name, or in a list of generations at both."""
    return f"{stored.name}\0{stored.generation + after}" if query.generations else stored.name


def _group(name: str, query: ListQuery) -> str:
    if not query.delimiter:
        return ""
    end = name.find(query.delimiter, len(query.prefix))
    return name[: end + len(query.delimiter)] if end >= 0 else ""


def page_token(resume: str) -> str:
    return base64.urlsafe_b64encode(resume.encode()).decode()


def resume_of(token: str) -> str:
    """The name at which a page token continues.

    Raises `RefusedError` (400) for a token that `page_token` did not create.
    """
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeError):
        raise invalid(
            f"Invalid pageToken: {token!r}; expected the nextPageToken of an earlier page."
        ) from None


def _literal_prefix(glob: str) -> str:
    """What every name begins with that the glob matches."""
    return re.split(r"[*?\[{]", glob, maxsplit=1)[0]


def glob_pattern(glob: str) -> Pattern:
    """A matchGlob as a pattern over whole names: `*`, `**`, `**/`, `?`, `[abc]`, `{one,two}`.

    Source: https://cloud.google.com/storage/docs/json_api/v1/objects/list#list-object-glob

    Raises:
        RefusedError: 400, a bracket or brace is not closed, or it is too large.
    """
    if len(glob) > MAX_CHARS:
        raise invalid(f"Invalid matchGlob: it has {len(glob)} characters; at most {MAX_CHARS} are allowed.")
    tokens = re.findall(r"(?<![^/])\*\*/|\*\*|\[[^]]*\]|.", glob, re.DOTALL)
    translated, depth = ["(?s)"], 0
    for token in tokens:
        match token:
            case _ if token in _WILDCARDS:
                translated.append(_WILDCARDS[token])
            case "{":
                depth += 1
                translated.append("(?:")
            case "}" if depth:
                depth -= 1
                translated.append(")")
            case "," if depth:
                translated.append("|")
            case _ if len(token) > 2 and token[0] == "[":  # noqa: PLR2004  # brackets with something in them
                inverted = token[1] in "!^"
                inner = re.sub(r"([\\\[\]^])", r"\\\1", token[1 + inverted : -1])
                translated.append(f"[{'^' if inverted else ''}{inner}]")
            case _:
                translated.append(re.escape(token))
    if depth:
        raise invalid(f"Invalid matchGlob: {glob!r}; a brace is not closed.")
    try:
        return Pattern("".join(translated), max_size=GLOB_MAX_SIZE, max_chars=_WIDEST * MAX_CHARS)
    except PatternError as fault:
        raise invalid(f"Invalid matchGlob: {glob!r} {fault}.") from None
