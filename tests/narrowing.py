"""Assertions that narrow a value's type where it is used."""

from typing import TypeVar

_Value = TypeVar("_Value")


def present(value: _Value | None) -> _Value:
    assert value is not None
    return value


def instance_of(kind: type[_Value], value: object) -> _Value:
    assert isinstance(value, kind), value
    return value
