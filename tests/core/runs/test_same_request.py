"""The names that a file may have had before it was put away."""

import pytest

from trainmaster.orchestrator.core.runs.same_request import document_id, names_before


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("requests/a.yaml", []),
        ("requests/done.yaml", []),
        ("requests/model-v2.yaml", []),
        ("requests/abandoned.yaml", []),
        ("requests/a.done.yaml", ["requests/a.yaml"]),
        ("requests/a_OLD.json", ["requests/a.json"]),
        ("requests/a (1).yaml", ["requests/a.yaml"]),
        ("requests/a - Copy (2).yaml", ["requests/a.yaml"]),
        ("requests/a copy 2.yaml", ["requests/a.yaml"]),
        ("requests/Copy of a.yml", ["requests/a.yml"]),
        ("requests/done/a.yaml", ["requests/a.yaml"]),
        ("requests/vision/Trash/a.yaml", ["requests/vision/a.yaml"]),
        ("requests/done/vision/a.yaml", ["requests/a.yaml", "requests/vision/a.yaml"]),
        (
            "requests/old/a.bak.yaml",
            ["requests/a.yaml", "requests/a.bak.yaml"],
        ),
    ],
)
def test_the_names_before(name: str, before: list[str]) -> None:
    assert names_before(name) == before


def test_texts_of_one_document_have_one_id_and_unreadable_ones_that_of_their_bytes() -> None:
    assert document_id(b"a: 1\nb: [x]  # note\n") == document_id(b'{"b": ["x"], "a": 1}')
    assert document_id(b"a: 1") != document_id(b"a: '1'")
    assert document_id(b"a: [") != document_id(b"a: {")
    assert document_id(b"\xff" * 1_000_000) != document_id(b"\xff")
