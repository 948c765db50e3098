"""YAML on the screen reads back as the same document, and is readable."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.cli.yaml_text import yaml_text

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
DOCUMENTS = st.recursive(TEXTS | st.integers() | st.booleans() | st.none(), lambda below: st.dictionaries(TEXTS, below, max_size=4) | st.lists(below, max_size=4))  # fmt: skip


@given(DOCUMENTS)
def test_a_document_is_read_back_unchanged(document: object) -> None:
    assert yaml.safe_load(yaml_text(document)) == document


def test_a_program_is_shown_line_by_line() -> None:
    assert (
        yaml_text({"command": ["if True:\n    print(1)\n"]}) == "command:\n- |\n  if True:\n      print(1)\n"
    )
