"""The filter of a list call: `state="JOB_STATE_SUCCEEDED" AND labels.team=vision`.

Fields: `display_name` (`=` `!=` `:` with `*`), `state` (`=` `!=`), `create_time` (`=` `!=` `<` `>` `<=` `>=`),
`labels.KEY` (as `display_name`, so `:*` for presence). All restrictions must hold; OR, NOT and parentheses are refused.
Source: the comments of google.cloud.aiplatform.v1.ListCustomJobsRequest and https://google.aip.dev/160, read 2026-11.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from google.cloud.aiplatform_v1.types.job_state import JobState

from trainstack.jobs.resource.errors import ApiError, Status
from trainstack.jobs.resource.job import VertexJob

Matches = Callable[[VertexJob], bool]

MAX_CHARS = 2000
"""Of a filter, which is read again for each page, and compared with every job."""

_WORD = r"""[^\s()<>=!:"']+"""
_RESTRICTION = re.compile(
    rf"""\s*(?:(?P<joined>AND)\s+)?(?P<path>{_WORD})\s*(?P<sign><=|>=|!=|[=<>:])?\s*"""
    rf"""(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|{_WORD})?"""
)
_SIGNS = {"display_name": "= != :", "state": "= !=", "create_time": "= != < > <= >=", "labels": "= != :"}
_ALIASES = {"displayName": "display_name", "createTime": "create_time"}
_ORDER: dict[str, Callable[[datetime, datetime], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip


class ListFilterError(ApiError):
    """A filter that the service would refuse, or that is not supported here."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.INVALID_ARGUMENT, message)


@dataclass(frozen=True, kw_only=True)
class ListFilter:
    matches: Matches
    label: tuple[str, str] | None = None
    """A label (key and value) that every matching job has; None if the filter requires none."""


def parse_filter(text: str) -> ListFilter:
    """The filter. An empty one matches every job.

    Raises:
        ListFilterError: with what was found and what is allowed.
    """
    if len(text) > MAX_CHARS:
        raise ListFilterError(
            f"Invalid filter: it has {len(text)} characters; at most {MAX_CHARS} are allowed."
        )
    parts = list(_restrictions(text))
    return ListFilter(
        matches=lambda job: all(part.matches(job) for part in parts),
        label=next((part.label for part in parts if part.label), None),
    )


def _restrictions(text: str) -> Iterator[ListFilter]:
    rest = whole = text.strip()
    while rest:
        match = _RESTRICTION.match(rest)
        if match is None or match["path"] in {"OR", "NOT"} or (match["joined"] and rest == whole):
            raise ListFilterError(
                f"Invalid filter {text!r}: cannot be parsed from {rest!r} on; join restrictions by AND. "
                "OR, NOT and parentheses are not supported."
            )
        rest = rest[match.end() :].lstrip()
        if match["sign"] is None:
            raise _syntax_error(text, f"an operator after {match['path']!r}", rest)
        if match["value"] is None:
            raise _syntax_error(text, f"a value after {match['path']}{match['sign']}", rest)
        yield _restriction(match["path"], match["sign"], _text_of(match["value"]))


def _syntax_error(text: str, what: str, rest: str) -> ListFilterError:
    remainder = f"{rest!r}, which cannot be parsed" if rest else "its end"
    return ListFilterError(f"Invalid filter {text!r}: expected {what}, found {remainder}.")


def _text_of(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value


def _restriction(path: str, sign: str, value: str) -> ListFilter:
    field, _, key = path.partition(".")
    field = _ALIASES.get(field, field)
    if field not in _SIGNS or bool(key) is not (field == "labels"):
        raise ListFilterError(
            f"Invalid filter field {path!r}; expected display_name, state, create_time or labels.KEY."
        )
    if sign not in _SIGNS[field].split():
        raise ListFilterError(f"Invalid filter operator {sign!r} for {path}.")
    match field:
        case "labels":
            label = (key, value) if sign == "=" else None
            return ListFilter(
                matches=lambda job: _holds(job.message.labels.get(key), sign, value), label=label
            )
        case "create_time":
            compare, instant = _ORDER[sign], _instant(value)
            return ListFilter(matches=lambda job: compare(job.create_time, instant))
        case "state":
            if value not in JobState.__members__:
                known = ", ".join(sorted(JobState.__members__))
                raise ListFilterError(f"Invalid filter value {value!r} for state; expected one of {known}.")
            return ListFilter(matches=lambda job: _holds(job.state.api_name, sign, value))
    return ListFilter(matches=lambda job: _holds(job.message.display_name, sign, value))


def _holds(text: str | None, sign: str, value: str) -> bool:
    if sign != ":":
        return (text == value) is (sign == "=")
    return text is not None and (_fits(text, value.split("*")) if "*" in value else value in text)


def _fits(text: str, parts: Sequence[str]) -> bool:
    """Whether the text is these parts with any text between them.

    Each part takes its first place: a later one never fits better, so no place is tried twice.
    """
    first, *between, last = parts
    start, end = len(first), len(text) - len(last)
    if not text.startswith(first) or not text.endswith(last):
        return False
    for part in between:
        start = text.find(part, start, end) + len(part)
        if start < len(part):
            return False
    return start <= end


def _instant(value: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise ListFilterError(
            f"Invalid filter value {value!r} for create_time; expected an RFC 3339 timestamp, for example 2026-05-18T00:00:00Z."
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
