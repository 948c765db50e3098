"""The filter of a list call, `state="JOB_STATE_SUCCEEDED" AND labels.team=vision`, and the jobs of one kind in memory.

Texts, `labels.KEY` and lists take `=` `!=` `:` (with `*`, so `:*` for presence), enums and booleans `=` `!=`, times all
comparisons. They are joined by AND, white space or OR, with NOT and parentheses; AND and OR are not mixed without them.
`in_context("NAME")` is the metadata service's; fields of `metadata` are refused.
Source: https://google.aip.dev/160 and the comments of the List*Request messages of google.cloud.aiplatform.v1, read 2026-11.
"""

import hashlib
import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Reversible, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Generic, TypeVar

from google.cloud.aiplatform_v1.types.custom_job import CustomJob
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from trainstack.errors import InvalidArgumentError
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.resource.machines import Message

Matches = Callable[[Message], bool]

MAX_CHARS, MAX_DEPTH = 2000, 20
"""Of a filter, which is read again for each page, and compared with every resource."""

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?P<sign><=|>=|!=|[()=<>:,])|(?P<word>[^\s()<>=!:,"']+))"""
)
_ORDER: dict[str, Callable[[datetime, datetime], bool]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
_JOB: Descriptor = CustomJob.pb().DESCRIPTOR
_JOB_FIELDS = ("display_name", "state", "create_time", "labels")


@dataclass(frozen=True, kw_only=True)
class ListFilter:
    matches: Matches
    label: tuple[str, str] | None = None
    """A label (key and value) that every matching resource has; None if the filter requires none."""


def parse_filter(
    text: str,
    kind: Descriptor = _JOB,
    fields: Collection[str] = _JOB_FIELDS,
    is_in: Callable[[Message, str], bool] | None = None,
) -> ListFilter:
    """The filter on messages of a kind, by these fields. An empty one matches every message.

    `is_in` says whether a resource is in a context, for kinds of which contexts have members.

    Raises:
        InvalidArgumentError: with what was found and what is allowed.
    """
    if len(text) > MAX_CHARS:
        raise InvalidArgumentError(
            f"Invalid filter: it has {len(text)} characters; at most {MAX_CHARS} are allowed."
        )
    parser = _Parser(text, kind, fields, is_in)
    wanted = parser.parse_terms() if text.strip() else ListFilter(matches=lambda _message: True)
    parser.expect("", "its end")
    return wanted


class _Parser:
    """Reads one filter. A quoted token keeps its quotation marks."""

    def __init__(
        self,
        text: str,
        kind: Descriptor,
        fields: Collection[str],
        is_in: Callable[[Message, str], bool] | None,
    ) -> None:
        self._text, self._kind, self._fields, self._is_in = text, kind, fields, is_in
        self._tokens, self._depth, end = list[str](), 0, 0
        while text[end:].strip():
            match = _TOKEN.match(text, end)
            if match is None:
                raise self._error(f"cannot be parsed from {text[end:].lstrip()!r} on")
            self._tokens.append(match[0].lstrip())
            end = match.end()

    def parse_terms(self) -> ListFilter:
        parts, joins = [self._part()], set[str]()
        while self._tokens and self._tokens[0] not in (")", ","):
            join = self._next() if self._tokens[0] in ("AND", "OR") else "AND"
            joins.add(join)
            parts.append(self._part())
        if len(joins) > 1:
            raise self._error("AND and OR need parentheses where they are mixed")
        decide = any if joins == {"OR"} else all
        label = None if joins == {"OR"} else next((part.label for part in parts if part.label), None)
        return ListFilter(
            matches=lambda message: decide(part.matches(message) for part in parts), label=label
        )

    def expect(self, token: str, name: str = "") -> None:
        if (found := self._next()) != token:
            raise self._error(f"expected {name or repr(token)}, found {found or 'its end'!r}")

    def _part(self) -> ListFilter:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"it is nested more than {MAX_DEPTH} levels deep")
        word = self._next()
        if word == "NOT":
            matches = self._part().matches
            part = ListFilter(matches=lambda message: not matches(message))
        elif word == "(":
            part = self.parse_terms()
            self.expect(")")
        elif word == "in_context" and (is_in := self._is_in) is not None:
            self.expect("(")
            context = self._value(word)
            self.expect(")")
            part = ListFilter(matches=lambda message: is_in(message, context))
        else:
            part = self._restriction(word)
        self._depth -= 1
        return part

    def _restriction(self, path: str) -> ListFilter:
        name, _, key = path.partition(".")
        name = re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", name)
        field = self._kind.fields_by_name.get(name)
        if not self._tokens or self._tokens[0] not in (*_ORDER, ":"):
            raise self._error(f"expected an operator after {path!r}, found {self._next() or 'its end'!r}")
        if name not in self._fields or field is None or bool(key) is not (name == "labels"):
            raise self._error(f"field {path!r}; expected {', '.join(self._fields)}, with labels.KEY")
        sign = self._next()
        values = [self._value(f"{path}{sign}")]
        while self._tokens[:1] == [","]:
            values += [self._next() and self._value(path)]
        tests = [self._test(field, key, sign, value) for value in values]
        part = ListFilter(matches=lambda message: all(test(message) for test in tests))
        return replace(part, label=(key, values[0])) if key and sign == "=" else part

    def _test(self, field: FieldDescriptor, key: str, sign: str, value: str) -> Matches:
        name = field.name
        if (
            field.message_type
            and field.message_type.full_name == "google.protobuf.Timestamp"
            and sign in _ORDER
        ):
            compare, instant = _ORDER[sign], _instant(value)
            return lambda message: compare(getattr(message, name).ToDatetime(tzinfo=UTC), instant)
        is_closed = field.enum_type is not None or field.type == FieldDescriptor.TYPE_BOOL
        if sign not in (("=", "!=") if is_closed else ("=", "!=", ":")):
            raise self._error(f"operator {sign!r} for {name}")
        if is_closed:
            values = field.enum_type.values_by_name.items() if field.enum_type else ()
            known = {text: enum.number for text, enum in values} or {"true": True, "false": False}
            if value not in known:
                raise self._error(f"value {value!r} for {name}; expected one of {', '.join(sorted(known))}")
            number = known[value]
            return lambda message: (getattr(message, name) == number) is (sign == "=")
        if key:
            return lambda message: _holds(message.labels.get(key), sign, value)
        if field.is_repeated:
            return lambda message: (value in getattr(message, name)) is not (sign == "!=")
        return lambda message: _holds(getattr(message, name), sign, value)

    def _next(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def _value(self, after: str) -> str:
        value = self._next()
        if not value or value in ("(", ")", ",", ":", *_ORDER):
            raise self._error(f"expected a value after {after}, found {value or 'its end'!r}")
        return re.sub(r"\\(.)", r"\1", value[1:-1]) if value[0] in "\"'" else value

    def _error(self, what: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"Invalid filter {self._text!r}: {what}.")


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
        raise InvalidArgumentError(
            f"Invalid filter value {value!r} for a time; expected an RFC 3339 timestamp, for example 2026-05-18T00:00:00Z."
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000

AnyJob = TypeVar("AnyJob", bound=VertexJob)
Label = tuple[str, str]


class Catalogue(Generic[AnyJob]):
    """Jobs by id, in order of creation. A job's labels never change: the service has no call for that."""

    def __init__(self, jobs: Iterable[AnyJob]) -> None:
        self._jobs: dict[str, AnyJob] = {}
        self._labelled: dict[Label, dict[str, None]] = {}
        for job in jobs:
            self.put(job)

    def __iter__(self) -> Iterator[AnyJob]:
        return iter(self._jobs.values())

    def get(self, job_id: str) -> AnyJob | None:
        return self._jobs.get(job_id)

    def put(self, job: AnyJob) -> None:
        if job.job_id not in self._jobs:
            for label in job.message.labels.items():
                self._labelled.setdefault(label, {})[job.job_id] = None
        self._jobs[job.job_id] = job

    def pop(self, job_id: str) -> AnyJob | None:
        job = self._jobs.pop(job_id, None)
        for label in job.message.labels.items() if job else ():
            having = self._labelled[label]
            del having[job_id]
            if not having:
                del self._labelled[label]
        return job

    def having(self, label: Label | None) -> Reversible[AnyJob]:
        """The jobs with that label, oldest first; all jobs for None."""
        if label is None:
            return self._jobs.values()
        return [self._jobs[job_id] for job_id in self._labelled.get(label, ())]

    def page(self, parent: str, *, filter_: str, size: int, token: str) -> tuple[list[AnyJob], str]:
        """One page of a parent's jobs, newest first, without those of trials, and the next page's token.

        The token is empty after the last page; it is tied to the filter.

        Raises:
            ApiError: INVALID_ARGUMENT for an invalid filter, size or token.
        """
        wanted = parse_filter(filter_)
        if size < 0:
            raise InvalidArgumentError(f"page_size: must not be negative, found {size}.")
        size = min(size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        digest = hashlib.sha256(filter_.encode()).hexdigest()[:12]
        after = token.removesuffix(f"-{digest}")
        page_jobs: list[AnyJob] = []
        for job in reversed(self.having(wanted.label)):
            if after:
                after = "" if job.job_id == after else after
            elif job.trial is None and job.parent == parent and wanted.matches(job.message):
                if len(page_jobs) == size:
                    return page_jobs, f"{page_jobs[-1].job_id}-{digest}"
                page_jobs.append(job)
        if after:
            raise InvalidArgumentError(f"page_token {token!r} does not belong to this list and filter.")
        return page_jobs, ""
