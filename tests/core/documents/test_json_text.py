"""Any text can be parsed or refused, and whatever was parsed can be written and parsed again."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.generated import json_values
from trainmaster.orchestrator.core.documents.codec import (
    MAX_DEPTH_STORED,
    TooDeep,
    decoded,
    encoded,
    json_bytes,
    json_line,
    parse_json,
)

TEXT = st.text(st.characters(exclude_categories=()))
VALUES = json_values(TEXT, st.integers() | st.floats())


@given(VALUES)
def test_anything_can_be_written_and_what_was_read_back_is_written_the_same(value: Any) -> None:
    written = json_bytes(value)
    assert json_bytes(parse_json(written)) == written
    assert parse_json(json_line(value)) == parse_json(written)


@given(st.binary())
def test_any_bytes_are_parsed_or_refused(content: bytes) -> None:
    try:
        value = parse_json(content)
    except ValueError:
        return
    json_bytes(value)


@pytest.mark.parametrize("content", [rb'{"a\ud800": ["\uDC00b"]}', b'{"a\xed\xa0\x80": ["\xed\xb0\x80b"]}'])
def test_a_lone_surrogate_becomes_a_replacement_character(content: bytes) -> None:
    assert parse_json(content) == {"a�": ["�b"]}
    assert parse_json(rb'"\ud83d\ude00"') == "\N{GRINNING FACE}"


@pytest.mark.parametrize("depth", [MAX_DEPTH_STORED + 1, 5_000, 200_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_deep_nesting_is_refused_and_written_without_its_depth(depth: int, begin: str, end: str) -> None:
    with pytest.raises(TooDeep, match=f"deeper than {MAX_DEPTH_STORED} levels"):
        parse_json(begin * depth + "1" + end * depth)


def test_a_value_that_is_too_deep_to_be_read_is_written_up_to_a_depth() -> None:
    value: Any = 1
    for _ in range(3_000):
        value = [value]
    assert "…" in json_line(value)
    parse_json(json_bytes(value))


@dataclass(frozen=True, kw_only=True)
class Measured:
    value: float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.1])
def test_a_number_that_json_lacks_is_read_back_as_it_was(value: float) -> None:
    found = decoded(Measured, parse_json(json_bytes(encoded(Measured(value=value))))).value
    assert found == value or (math.isnan(found) and math.isnan(value))


def test_an_integer_beyond_every_float_is_not_a_number_of_a_document() -> None:
    with pytest.raises(ValueError, match=r"\$\.value"):
        decoded(Measured, parse_json('{"value": 1' + "0" * 400 + "}"))
