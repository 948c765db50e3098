"""Subscription filters: what passes, and what is not a filter."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainstack.errors import InvalidArgumentError
from trainstack.pubsub.checks.settings import parse_filter

ATTRIBUTES = {"kind": "model", "empty": "", "iana.org/tag": "en-GB", "NOT": "x"}


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("", True),
        ("attributes:kind", True),
        ("attributes:empty", True),
        ("attributes:absent", False),
        ('attributes.kind = "model"', True),
        ('attributes.kind="MODEL"', False),
        ('attributes.kind != "model"', False),
        ('attributes.absent != "model"', True),
        ('hasPrefix(attributes.kind, "mo")', True),
        ('hasPrefix(attributes.absent, "")', False),
        ('attributes:"iana.org/tag"', True),
        ('attributes."iana.org/tag" = "en\\x2dGB"', True),
        ("NOT attributes:kind", False),
        ("-attributes:absent", True),
        ("NOT NOT attributes:kind", True),
        ("attributes:NOT", True),
        ("attributes:kind AND attributes:absent", False),
        ("attributes:kind OR attributes:absent", True),
        ("(attributes:kind OR attributes:x) AND NOT (attributes:y AND attributes:kind)", True),
    ],
)
def test_a_filter_looks_at_attributes_alone(text: str, passes: bool) -> None:
    assert parse_filter(text)(ATTRIBUTES) is passes


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("attributes:a AND attributes:b OR attributes:c", 31),
        ("attributes:a attributes:b", 14),
        ('attributes.a == "b"', 15),
        ("attributes.a = b", 16),
        ('data = "x"', 1),
        ("attributes:a and attributes:b", 14),
        ('attributes.a = "\\q"', 16),
    ],
)
def test_an_invalid_filter_is_refused_with_the_place(text: str, column: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"column {column}"):
        parse_filter(text)


@given(st.text(max_size=60))
def test_any_text_is_a_filter_or_is_refused(text: str) -> None:
    with contextlib.suppress(InvalidArgumentError):
        assert parse_filter(text)(ATTRIBUTES) in (True, False)


@given(key=st.text(min_size=1, max_size=8), value=st.text(max_size=8))
def test_any_key_and_value_can_be_quoted(key: str, value: str) -> None:
    def quoted(text: str) -> str:
        return '"' + "".join(f"\\u{ord(c):04x}" if ord(c) < 0x10000 else c for c in text) + '"'

    accepted = parse_filter(f"attributes.{quoted(key)} = {quoted(value)}")
    assert accepted({key: value})
    assert not accepted({key: value + "x"})
