"""In every kind of document that users write: one value in place of a list, and numbers that YAML 1.1 reads as texts."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.core.fuzz.mutation import places
from tests.core.fuzz.seeds import stored
from tests.core.shipped import schema
from tests.core.vertex_files import Path, changed
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import json_path
from trainmaster.orchestrator.core.documents.validation import schema_faults

KINDS = ("training_request.v1", "retraining_rule.v1", "policy.v1", "prices.v1", "order.v1")
SEVERAL_KINDS = {"require_digest", "refused"}
"""Keys that take a list or something else."""


def parts(kind: str, wanted: type | tuple[type, ...]) -> Iterator[tuple[dict[str, Any], Path, Any]]:
    """Each value of the type in the examples: its document, its path and itself."""
    for document in stored(kind):
        for path in filter(None, places(document)):
            value: Any = document
            for part in path:
                value = value[part]
            if isinstance(value, wanted) and not isinstance(value, bool):
                yield document, path, value


@pytest.mark.parametrize("kind", KINDS)
def test_a_single_value_in_place_of_a_list_is_one_fault_with_its_repair(kind: str) -> None:
    for document, path, members in parts(kind, list):
        for fault in schema_faults(schema(kind), changed(document, path, members[0])) if members else ():
            assert "'- '" in fault.repair, path
            if SEVERAL_KINDS.isdisjoint(path):
                assert (fault.path, fault.problem) == (json_path(path), "expected a list")


@pytest.mark.parametrize("kind", KINDS)
def test_a_number_without_point_or_sign_is_the_number(kind: str) -> None:
    for document, path, number in parts(kind, (int, float)):
        if path[-2:] == ("chief", "count") or "matrix" in path:  # only 1; and an argument is text anyhow
            continue
        written = changed(document, path, f"{number * 10}e-1")
        assert schema_faults(schema(kind), written) == []
        assert written == document


@pytest.mark.parametrize("text", ["1e-5", "1E5", "1.5e3", ".5e3", "-2e0", "1e999", "e5", "1e", "1e5s"])
def test_a_text_of_a_finite_number_is_one_where_a_number_is_expected(text: str) -> None:
    holder = {"a": yaml.safe_load(text)}
    assert holder == {"a": text}, "YAML 1.1 reads it as a text"
    is_number = text in ("1e-5", "1E5", "1.5e3", ".5e3", "-2e0")
    faults = schema_faults({"type": "object", "properties": {"a": {"type": "number"}}}, holder)
    assert (holder["a"], len(faults)) == ((float(text), 0) if is_number else (text, 1))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"fallbacks": {"regon": "us-east1"}},
            {"$.fallbacks": "write '- ' before regon", "$.fallbacks.regon": "did you mean 'region'?"},
        ),
        (
            {"tuning": [{"metrics": {"id": "a b", "goal": "maximize"}, "parameters": {}, "max_trials": 0}]},
            {
                "$.tuning": "write it without '- '",
                "$.tuning[0].max_trials": "1 to 1000",
                "$.tuning[0].metrics": "write '- ' before id",
                "$.tuning[0].metrics.id": "without white space",
                "$.tuning[0].parameters": "at least 1 entry",
            },
        ),
        (
            {"scheduling": [{"retries": 9}, {"retry_on": ["oom"]}]},
            {
                "$.scheduling": "write a mapping, NAME: VALUE",
                "$.scheduling.retries": "0 to 3",
                "$.scheduling.retry_on[0]": "infrastructure, preemption, out_of_memory",
            },
        ),
        ({"args": {"epochs": "3"}}, {"$.args": "write '- ' before epochs"}),
        ({"env": [{"name": "A", "value": "b"}]}, {"$.env": "write a mapping, NAME: VALUE"}),
    ],
)
def test_a_wrong_container_does_not_hide_what_is_in_it(
    changes: dict[str, Any], expected: dict[str, str]
) -> None:
    document = {"model_name": "m", "image": "host.example/p/r/i:1", **copy.deepcopy(changes)}
    found = {fault.path: str(fault) for fault in schema_faults(schema("training_request.v1"), document)}
    assert found.keys() == expected.keys()
    assert {path: words for path, words in expected.items() if words in found[path]} == expected


def test_a_word_of_a_command_line_is_a_text_unless_it_was_written_otherwise() -> None:
    words = "args: [3, -0.5, true, 1e-5, 007x]\ncommand: [3, 3.10, yes]\nenv: {N: 3}"
    read = parse_document(f"model_name: m\nimage: host.example/p/r/i:1\n{words}".encode(), as_json=False)
    faults = {
        fault.path: fault.repair
        for fault in schema_faults(schema("training_request.v1"), read.value, read.spelled)
    }
    assert instance_of(dict, read.value)["args"] == ["3", "-0.5", "true", "1e-5", "007x"]
    assert faults.keys() == {"$.command[1]", "$.command[2]", "$.env.N"}
    assert faults["$.command[1]"] == 'quote it: "3.10"'
