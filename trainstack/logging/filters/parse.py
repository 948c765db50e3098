"""Parses a filter."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken, v_args
from lark.exceptions import VisitError

from trainstack.instants import parse_instant
from trainstack.logging.filters.compare import Predicate, comparison, texts
from trainstack.logging.filters.fields import RANKS, fold, resolve, severity_name
from trainstack.logging.filters.terms import ANY_SHAPE, FilterWork, LogFilterError, Operator, Value

MAX_FILTER_CHARACTERS = 20_000
MAX_DEPTH = 100

# NOT binds tightest, then OR, then AND, which may also be implicit: https://google.aip.dev/160.
_GRAMMAR = r"""
    ?start: conjunction
    conjunction: disjunction (_AND? disjunction)*
    disjunction: term (_OR term)*
    ?term: (_NOT | _MINUS) term -> negation
         | "(" conjunction ")"
         | comparison
         | FUNCTION "(" (value ("," value)*)? ")" -> call
         | value -> anywhere
    comparison: (PATH | TEXT | STRING) OPERATOR (value | "(" value (_OR value)* ")")
    value: SIGNED | PATH | TEXT | STRING

    _AND.4: /AND(?![\w.\/%+*@$-])/
    _OR.4: /OR(?![\w.\/%+*@$-])/
    _NOT.4: /NOT(?![\w.\/%+*@$-])/
    _MINUS: "-"
    OPERATOR: /=~|!~|!=|<=|>=|=|<|>|:/
    FUNCTION.3: /[A-Za-z_]\w*(?=\()/
    SIGNED.2: /-(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?(?![\w.\/%+*@$-])/
    PATH.1: /([\w\/%+*@$][\w\/%+*@$-]*|"([^"\\]|\\.)*")(\.([\w\/%+*@$][\w\/%+*@$-]*|"([^"\\]|\\.)*"))+/s
    TEXT: /(?!(AND|OR|NOT)(?![\w.\/%+*@$-]))[\w\/%+*@$][\w\/%+*@$-]*/
    STRING: /"([^"\\]|\\.)*"/s
    COMMENT: /--[^\n]*/
    %ignore COMMENT
    %ignore /\s+/
"""


Bound: TypeAlias = tuple[str, int | str]
"""An SQL condition on an indexed column, with one placeholder, and its value."""


@dataclass(frozen=True, kw_only=True)
class LogFilter:
    """A predicate on entries, and the bounds that every matching entry satisfies: a list reads no others."""

    predicate: Predicate
    bounds: tuple[Bound, ...] = ()

    def passes(self, entry: Mapping[str, object], work: FilterWork | None = None) -> bool:
        """Whether the entry matches; `work` counts what that costs.

        Raises:
            FilterTooCostlyError: it costs too much.
        """
        return self.predicate(entry, work or FilterWork())


EVERYTHING = LogFilter(predicate=lambda _entry, _work: True)


@lru_cache(maxsize=16)  # a list's pages follow each other; the patterns of a filter may hold a MiB each
def parse_filter(text: str) -> LogFilter:
    """The filter; text with only whitespace and comments gives `EVERYTHING`.

    Raises:
        LogFilterError: too long, nested too deeply, or invalid, with the position; an unknown field; a value
            that the field cannot be compared with.
    """
    if len(text) > MAX_FILTER_CHARACTERS:
        raise LogFilterError(f"it has {len(text)} characters; at most {MAX_FILTER_CHARACTERS} are allowed")
    _check_depth(text)
    try:
        tokens = _PARSER.lex(text)
        if next(iter(tokens), None) is None:
            return EVERYTHING
        parsed: LogFilter = _Builder().transform(_PARSER.parse(text))
    except UnexpectedInput as fault:
        raise _error_from(fault, text) from fault
    except VisitError as fault:
        raise fault.orig_exc from fault
    except RecursionError as fault:
        raise LogFilterError("it is nested too deeply") from fault
    return parsed


def _check_depth(text: str) -> None:
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    if deepest > MAX_DEPTH:
        raise LogFilterError(
            f"its parentheses are nested {deepest} deep; at most {MAX_DEPTH} levels are allowed"
        )


def _error_from(fault: UnexpectedInput, text: str) -> LogFilterError:
    match fault:
        case UnexpectedToken(token=Token(type="$END")):
            lines = text.split("\n")
            return LogFilterError("it is incomplete", line=len(lines), column=len(lines[-1]) + 1)
        case UnexpectedToken(token=token):
            return _error_at(fault, f"unexpected {str(token)!r}")
        case UnexpectedCharacters(char=character):
            reason = "put values with special characters in double quotes"
            return _error_at(fault, f"unexpected character {character!r}; {reason}")
        case _:
            return _error_at(fault, "it cannot be parsed")


def _error_at(place: object, reason: str) -> LogFilterError:
    """The error at the line and column of a token, or of one of the parser's faults."""
    line, column = (getattr(place, name, None) or 0 for name in ("line", "column"))
    return LogFilterError(reason, line=line, column=column)


def _text_of(text: str) -> str:
    """Without quotes and escapes; an unknown escape is kept as its character, so that regular expressions survive."""
    return _ESCAPED.sub(lambda found: _ESCAPES.get(found[1], found[0]), text[1:-1])


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}
_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[^."]+', re.DOTALL)


def _segments(token: Token) -> tuple[str, ...]:
    """The parts of a path; a quoted part may have dots."""
    parts = _PART.findall(token)
    return tuple(_text_of(part) if part.startswith('"') else part for part in parts)


@v_args(inline=True)
class _Builder(Transformer[Token, LogFilter]):
    def value(self, token: Token) -> Value:
        if token.type == "STRING":
            return Value(text=_text_of(token), quoted=True)
        if '"' in token:
            raise _error_at(token, f"only a part of the value {str(token)!r} is quoted")
        return Value(text=str(token), quoted=False)

    def conjunction(self, *parts: LogFilter) -> LogFilter:
        if len(parts) == 1:
            return parts[0]
        every = [part.predicate for part in parts]
        bounds = tuple(bound for part in parts for bound in part.bounds)
        return LogFilter(predicate=lambda entry, work: all(one(entry, work) for one in every), bounds=bounds)

    def disjunction(self, *parts: LogFilter) -> LogFilter:
        if len(parts) == 1:
            return parts[0]
        some = [part.predicate for part in parts]
        return LogFilter(predicate=lambda entry, work: any(one(entry, work) for one in some))

    def negation(self, part: LogFilter) -> LogFilter:
        return LogFilter(predicate=lambda entry, work: not part.predicate(entry, work))

    def anywhere(self, value: Value) -> LogFilter:
        wanted = fold(value.text)

        def holds(entry: Mapping[str, object], work: FilterWork) -> bool:
            work.spend(ANY_SHAPE)
            return any(wanted in fold(text) for text in texts(entry))

        return LogFilter(predicate=holds)

    def call(self, name: Token, *_arguments: Value) -> LogFilter:
        raise _error_at(name, f"this emulator does not support the function {str(name)!r}")

    def comparison(self, path: Token, operator: Token, *values: Value) -> LogFilter:
        """`f=("a" OR "b")` is `f="a" OR f="b"`."""
        of = _segments(path), Operator(str(operator))
        comparisons = [
            LogFilter(predicate=comparison(*of, value), bounds=tuple(_bounds_of(*of, value)))
            for value in values
        ]
        return self.disjunction(*comparisons)


def _bounds_of(path: tuple[str, ...], operator: Operator, wanted: Value) -> Iterator[Bound]:
    """The bounds of a valid comparison."""
    resolved, _ = resolve(path)
    value = wanted.text
    match resolved, operator:
        case ("timestamp",), Operator.MORE | Operator.AT_LEAST:
            yield "timestamp >= ?", parse_instant(value)
        case ("timestamp",), Operator.LESS | Operator.AT_MOST:
            yield "timestamp <= ?", parse_instant(value)
        case ("severity",), Operator.MORE | Operator.AT_LEAST | Operator.EQUALS:
            yield "severity >= ?", RANKS[severity_name(value)]
        case ("resource", "labels", "job_id"), Operator.EQUALS if value:
            yield "job_id = ?", fold(value)
            yield "job_id <> ?", ""  # lets the partial index answer
        case ("logName",), Operator.EQUALS:
            yield "log_name = ?", fold(value)
        case _:
            return


_PARSER = Lark(_GRAMMAR, parser="lalr")
