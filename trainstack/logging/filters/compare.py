"""Compares one field of an entry with one value of a filter; does as much as possible once, at compile time."""

import operator as op
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from trainstack.instants import parse_duration, parse_instant
from trainstack.logging.filters.fields import DEFAULTS, RANKS, FieldKind, fold, getter, resolve, severity_name
from trainstack.logging.filters.terms import (
    ANY_SHAPE,
    ONE_VALUE,
    SHORT_VALUES,
    FilterWork,
    LogFilterError,
    Operator,
    Value,
)
from trainstack.patterns import Pattern, PatternError

Predicate: TypeAlias = Callable[[Mapping[str, object], FilterWork], bool]
"""Whether an entry, in its JSON form, matches."""

Test: TypeAlias = Callable[[object], bool]

_ORDER: Mapping[Operator, Callable[[float | str, float | str], bool]] = {
    Operator.EQUALS: op.eq,
    Operator.DIFFERS: op.ne,
    Operator.LESS: op.lt,
    Operator.AT_MOST: op.le,
    Operator.MORE: op.gt,
    Operator.AT_LEAST: op.ge,
}


def comparison(path: tuple[str, ...], operator: Operator, value: Value) -> Predicate:
    """Whether an entry's field at the path satisfies the comparison.

    Raises:
        LogFilterError: log entries have no such field, or it cannot be compared with that value.
    """
    resolved, kind = resolve(path)
    get = getter(resolved)
    if operator is Operator.HAS and value.text == "*" and not value.quoted:
        return lambda entry, _work: bool(get(entry))
    per_byte = ANY_SHAPE if kind is FieldKind.FREE else ONE_VALUE
    if operator in (Operator.MATCHES, Operator.MATCHES_NOT):
        pattern = _pattern(value)
        per_byte = pattern.size + (SHORT_VALUES if kind is FieldKind.FREE else 0)
        test = _match_test(pattern, wanted=operator is Operator.MATCHES)
    else:
        test = _test_for(operator, value, kind)
    # An absent field of LogEntry has its default; an absent payload key or label is missing, and then every
    # comparison fails, != too.
    default = DEFAULTS.get(kind)
    absent = default is not None and test(default)

    def passes(entry: Mapping[str, object], work: FilterWork) -> bool:
        work.spend(per_byte)
        actual = get(entry)
        return any(map(test, actual)) if actual else absent

    return passes


def _test_for(operator: Operator, value: Value, kind: FieldKind) -> Test:
    match kind:
        case FieldKind.INSTANT:
            return _rank_test(operator, value, parse_instant)
        case FieldKind.DURATION:
            return _rank_test(operator, value, parse_duration)
        case FieldKind.SEVERITY:
            return _rank_test(operator, value, lambda text: RANKS[severity_name(text)])
        case _ if operator is Operator.HAS:
            return _has(value)
        case _:
            return _scalar(operator, value, numeric=kind in (FieldKind.NUMBER, FieldKind.LONG))


def _pattern(value: Value) -> Pattern:
    try:
        return Pattern(value.text)
    except PatternError as fault:
        raise LogFilterError(f"the pattern {value.text!r:.200} {fault}") from fault


def _match_test(pattern: Pattern, *, wanted: bool) -> Test:
    return lambda actual: pattern.is_in(as_text(actual)) is wanted


def _rank_test(operator: Operator, value: Value, rank: Callable[[str], int]) -> Test:
    """Compares the ranks of both sides; `:` is equality."""
    try:
        bound = rank(value.text)
    except ValueError as fault:
        raise LogFilterError(str(fault)) from fault
    compare = _ORDER[Operator.EQUALS if operator is Operator.HAS else operator]
    return lambda actual: compare(rank(str(actual)), bound)


def _has(value: Value) -> Test:
    wanted = fold(value.text)

    def test(actual: object) -> bool:
        match actual:
            case str():
                return wanted in actual.lower()
            case dict():
                return any(wanted == fold(key) or test(inner) for key, inner in actual.items())
            case list():
                return any(test(inner) for inner in actual)
            case _:
                return wanted == fold(as_text(actual))

    return test


def _scalar(operator: Operator, value: Value, *, numeric: bool) -> Test:
    compare = _ORDER[operator]
    text, number = fold(value.text), _number(value.text)

    def test(actual: object) -> bool:
        if numeric and isinstance(actual, str):  # 64-bit integers travel as JSON strings
            actual = _number(actual)
        if isinstance(actual, bool | None):
            return compare(as_text(actual), "null" if text == "null_value" else text)
        if isinstance(actual, int | float):
            return number is not None and compare(actual, number)
        return isinstance(actual, str) and compare(actual.lower(), text)

    return test


def _number(text: str) -> float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def as_text(value: object) -> str:
    """A scalar of an entry, formatted as in JSON."""
    match value:
        case True:
            return "true"
        case False:
            return "false"
        case None:
            return "null"
        case _:
            return str(value)


def texts(value: object) -> Iterator[str]:
    """Every scalar in an entry, as text."""
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)
    else:
        yield as_text(value)
