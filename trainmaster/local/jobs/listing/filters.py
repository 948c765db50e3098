"""The filter of a list call: `state="JOB_STATE_SUCCEEDED" AND labels.team=vision`.

Fields: `display_name` (`=` `!=` `:` with `*`), `state` (`=` `!=`), `create_time` (`=` `!=` `<` `>` `<=` `>=`),
`labels.KEY` (`=` `!=`, and `:*` for presence). All restrictions must hold; OR, NOT and parentheses are refused.
Source: the comments of google.cloud.aiplatform.v1.ListCustomJobsRequest and https://google.aip.dev/160, read 2026-11.
"""

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import Job
from trainmaster.local.jobs.resource.lifecycle import JobState

Matches = Callable[[Job], bool]

_WORD = r"""[^\s()<>=!:"']+"""
_RESTRICTION = re.compile(
    rf"""\s*(?:(?P<joined>AND)\s+)?(?P<path>{_WORD})\s*(?P<sign><=|>=|!=|[=<>:])?\s*"""
    rf"""(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|{_WORD})?"""
)
_ORDER: dict[str, Callable[[datetime, datetime], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip


class FilterError(ApiError):
    """A filter that the service would refuse, or one that is not imitated."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.INVALID_ARGUMENT, message)


@dataclass(frozen=True, kw_only=True)
class Filter:
    """What a filter says of a job."""

    matches: Matches
    label: tuple[str, str] | None = None
    """A label, key and value, that no job is without that matches; None where the filter asks for none."""


def parse_filter(text: str) -> Filter:
    """The filter. An empty one matches every job.

    Raises:
        FilterError: with what was found and what may stand there.
    """
    parts = list(_restrictions(text))
    return Filter(
        matches=lambda job: all(part.matches(job) for part in parts),
        label=next((part.label for part in parts if part.label), None),
    )


def _restrictions(text: str) -> Iterator[Filter]:
    rest = whole = text.strip()
    while rest:
        found = _RESTRICTION.match(rest)
        if found is None or found["path"] in {"OR", "NOT"} or (found["joined"] and rest == whole):
            raise FilterError(
                f"Invalid filter {text!r}: cannot be read from {rest!r} on; restrictions may be joined by AND, "
                "and OR, NOT and parentheses are not imitated."
            )
        rest = rest[found.end() :].lstrip()
        if found["sign"] is None:
            raise _expected(text, f"an operator after {found['path']!r}", rest)
        if found["value"] is None:
            raise _expected(text, f"a value after {found['path']}{found['sign']}", rest)
        yield _restriction(found["path"], found["sign"], _unquoted(found["value"]))


def _expected(text: str, what: str, rest: str) -> FilterError:
    found = f"{rest!r}, which cannot be read" if rest else "its end"
    return FilterError(f"Invalid filter {text!r}: expected {what}, found {found}.")


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value


def _restriction(path: str, sign: str, value: str) -> Filter:
    field, _, key = path.partition(".")
    match field, bool(key):
        case ("display_name" | "displayName", False):
            return Filter(matches=_on_name(sign, value))
        case ("state", False):
            return Filter(matches=_on_state(sign, value))
        case ("create_time" | "createTime", False):
            return Filter(matches=_on_time(sign, value))
        case ("labels", True):
            return Filter(matches=_on_label(key, sign, value), label=(key, value) if sign == "=" else None)
        case _:
            raise FilterError(
                f"Invalid filter field {path!r}; jobs are filtered by display_name, state, create_time and labels.KEY."
            )


def _on_name(sign: str, value: str) -> Matches:
    match sign:
        case "=" | "!=":
            return lambda job: (job.message.display_name == value) is (sign == "=")
        case ":":
            pattern = re.compile(".*".join(re.escape(part) for part in value.split("*")), re.DOTALL)
            whole = "*" in value
            return lambda job: bool(
                (pattern.fullmatch if whole else pattern.search)(job.message.display_name)
            )
        case _:
            raise _unusable("display_name", sign)


def _on_state(sign: str, value: str) -> Matches:
    if sign not in {"=", "!="}:
        raise _unusable("state", sign)
    known = {state.api_name for state in JobState} | _OTHER_STATES
    if value not in known:
        raise FilterError(f"Invalid filter value {value!r} for state; one of {', '.join(sorted(known))}.")
    return lambda job: (job.state.api_name == value) is (sign == "=")


_OTHER_STATES = {
    f"JOB_STATE_{name}" for name in ("UNSPECIFIED", "PAUSED", "EXPIRED", "UPDATING", "PARTIALLY_SUCCEEDED")
}


def _on_time(sign: str, value: str) -> Matches:
    compare = _ORDER.get(sign)
    if compare is None:
        raise _unusable("create_time", sign)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError as error:
        raise FilterError(
            f"Invalid filter value {value!r} for create_time; RFC 3339, for example 2026-05-18T00:00:00Z."
        ) from error
    instant = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return lambda job: compare(job.create_time, instant)


def _on_label(key: str, sign: str, value: str) -> Matches:
    match sign:
        case "=":
            return lambda job: key in job.message.labels and job.message.labels[key] == value
        case "!=":
            return lambda job: key not in job.message.labels or job.message.labels[key] != value
        case ":" if value == "*":
            return lambda job: key in job.message.labels
        case ":":
            return lambda job: key in job.message.labels and job.message.labels[key] == value
        case _:
            raise _unusable(f"labels.{key}", sign)


def _unusable(field: str, sign: str) -> FilterError:
    return FilterError(f"Invalid filter operator {sign!r} for {field}.")
