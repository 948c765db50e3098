"""The page of faults has what the command answers now."""

import pytest

from tests.repo.faults import EXAMPLE, PAGE, answer, page


def test_the_answers_on_the_page_are_those_of_the_command() -> None:
    text = PAGE.read_text()
    assert text.count("```yaml faulty\n") == len(EXAMPLE.findall(text))
    assert page(text) == text, "write them again: python -m tests.repo.faults"


def test_an_example_without_a_fault_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a fault"):
        answer(
            "model_name: a\nimage: us-docker.pkg.dev/my-project/a/b\ncluster: {chief: {machine: n1-standard-4}}\n"
        )
