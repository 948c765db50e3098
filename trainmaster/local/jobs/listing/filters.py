"""The filter of a list call: `state="JOB_STATE_SUCCEEDED" AND NOT labels.team=vision`.

Fields: `display_name` (`=` `!=` `:` with `*`), `state` (`=` `!=`), `create_time` (`=` `!=` `<` `>` `<=` `>=`),
`labels.KEY` (`=` `!=`, and `:*` for presence).
AND is looser than OR, NOT and `-` bind tightest, parentheses group.
Source: the comments of google.cloud.aiplatform.v1.ListCustomJobsRequest and https://google.aip.dev/160, read 2026-11.
"""

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import Job
from trainmaster.local.jobs.resource.lifecycle import JobState

Matches = Callable[[Job], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<open>\()|(?P<close>\))|(?P<op><=|>=|!=|=|<|>|:)|"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^'\\]|\\.)*)'"""
    r"""|(?P<minus>-(?=[^\s]))|(?P<word>[^\s()<>=!:"']+))"""
)
_ORDER: dict[str, Callable[[datetime, datetime], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip


class FilterError(ApiError):
    """A filter that the service would refuse."""

    def __init__(self, message: str) -> None:
        super().__init__(Status.INVALID_ARGUMENT, message)


@dataclass(frozen=True, kw_only=True)
class _Token:
    kind: str
    text: str


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
    reader = _Reader(text)
    if reader.at_end():
        return Filter(matches=lambda _job: True)
    found = reader.conjunction()
    if not reader.at_end():
        raise reader.fault("AND, OR or the end of the filter")
    return found


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0

    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def fault(self, expected: str) -> FilterError:
        found = "its end" if self.at_end() else repr(self._tokens[self._at].text)
        return FilterError(f"Invalid filter {self._text!r}: expected {expected}, found {found}.")

    def conjunction(self) -> Filter:
        parts = [self._disjunction()]
        while self._take_word("AND") or self._starts_a_term():
            parts.append(self._disjunction())
        return Filter(
            matches=lambda job: all(part.matches(job) for part in parts),
            label=next((part.label for part in parts if part.label), None),
        )

    def _disjunction(self) -> Filter:
        parts = [self._term()]
        while self._take_word("OR"):
            parts.append(self._term())
        if len(parts) == 1:
            return parts[0]
        return Filter(matches=lambda job: any(part.matches(job) for part in parts))

    def _term(self) -> Filter:
        if self._take_word("NOT") or self._take("minus"):
            inner = self._term()
            return Filter(matches=lambda job: not inner.matches(job))
        if self._take("open"):
            inner = self.conjunction()
            if not self._take("close"):
                raise self.fault("')'")
            return inner
        return self._restriction()

    def _restriction(self) -> Filter:
        path = self._take("word")
        if path is None:
            raise self.fault("a field: display_name, state, create_time or labels.KEY")
        sign = self._take("op")
        if sign is None:
            raise self.fault(f"an operator after {path!r}")
        value = self._take("double", "single", "word")
        if value is None:
            raise self.fault(f"a value after {path}{sign}")
        return _restriction(path, sign, value)

    def _starts_a_term(self) -> bool:
        return (
            not self.at_end()
            and self._tokens[self._at].kind in {"open", "minus", "word"}
            and not self._is_word("OR")
        )

    def _is_word(self, text: str) -> bool:
        return not self.at_end() and self._tokens[self._at] == _Token(kind="word", text=text)

    def _take_word(self, text: str) -> bool:
        if self._is_word(text):
            self._at += 1
            return True
        return False

    def _take(self, *kinds: str) -> str | None:
        if self.at_end() or self._tokens[self._at].kind not in kinds:
            return None
        self._at += 1
        return self._tokens[self._at - 1].text


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    rest = text.rstrip()
    while at < len(rest):
        match = _TOKEN.match(rest, at)
        if match is None or match.lastgroup is None:
            raise FilterError(f"Invalid filter {text!r}: cannot be read from {rest[at:]!r} on.")
        content = match.group(match.lastgroup)
        if match.lastgroup in {"double", "single"}:
            content = re.sub(r"\\(.)", r"\1", content)
        found.append(_Token(kind=match.lastgroup, text=content))
        at = match.end()
    return found


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
