"""Fields of a newer release survive a write by this one."""

from typing import Any

import pytest

from trainmaster.orchestrator.core.documents.codec import with_unknown

BEFORE: dict[str, Any] = {"a": 1, "inner": {"b": 2}, "steps": [{"s": 1}, {"s": 2}], "names": ["x"]}
RAW: dict[str, Any] = {
    "a": 1,
    "inner": {"b": 2, "new": {"deep": True}},
    "steps": [{"s": 1}, {"s": 2, "new": "second"}],
    "names": ["x"],
    "new": [1],
    "absent": None,
}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {}),
        ({"a": 5}, {"a": 5}),
        ({"inner": {"b": 3}}, {"inner": {"b": 3, "new": {"deep": True}}}),
        ({"steps": [{"s": 2}, {"s": 3}]}, {"steps": [{"s": 2, "new": "second"}, {"s": 3}]}),
        ({"steps": []}, {"steps": []}),
        ({"names": ["x", "y"]}, {"names": ["x", "y"]}),
    ],
)
def test_unknown_parts_are_kept_at_every_level(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    kept = {key: part for key, part in RAW.items() if part is not None}
    assert with_unknown({**BEFORE, **changes}, BEFORE, RAW) == {**kept, **expected}


def test_what_this_release_removes_stays_removed() -> None:
    after = {key: part for key, part in BEFORE.items() if key != "inner"}
    assert "inner" not in with_unknown(after, BEFORE, RAW)


def test_a_document_without_unknown_parts_is_written_as_it_is() -> None:
    after = {"a": 7}
    assert with_unknown(after, BEFORE, BEFORE) is after
    assert with_unknown(after, None, None) is after
