"""Each path of a text has the line on which a person finds it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.generated import json_values
from trainmaster.orchestrator.core.documents.document import parse_line_numbers
from trainmaster.orchestrator.core.documents.values import MAX_VALUES

YAML = """\
# a comment
model_name: m
args:
- --a
- {b: 1, "c d": 2}

cluster:
  chief: {machine: n1}
"""
LINES = {
    "$": 2,
    "$.model_name": 2,
    "$.args": 3,
    "$.args[0]": 4,
    "$.args[1]": 5,
    "$.args[1].b": 5,
    "$.args[1]['c d']": 5,
    "$.cluster": 7,
    "$.cluster.chief": 8,
    "$.cluster.chief.machine": 8,
}
TEXT = st.text('ab {}[],:"\\\n', max_size=8)
DOCUMENTS = json_values(TEXT)


def test_yaml_says_the_line_of_every_key_and_item() -> None:
    assert parse_line_numbers(YAML, as_json=False) == LINES


@given(st.dictionaries(TEXT, DOCUMENTS, max_size=4))
def test_json_says_the_same_as_yaml_does_of_it(document: dict[str, Any]) -> None:
    text = json.dumps(document, indent=2)
    assert parse_line_numbers(text, as_json=True) == parse_line_numbers(text, as_json=False)


@pytest.mark.parametrize("as_json", [True, False])
def test_the_map_holds_every_value_of_the_largest_document(as_json: bool) -> None:
    text = json.dumps([1] * (MAX_VALUES - 1))
    assert len(parse_line_numbers(text, as_json=as_json)) == MAX_VALUES
