"""The reference of the command is what the command says now."""

from tests.repo.commands import MARKER, PAGE, page
from trainmaster.cli.command import VERBS

RENEW = "write it again: python -m tests.repo.commands"


def test_the_reference_is_written_from_the_command() -> None:
    text = PAGE.read_text()
    assert text.count(MARKER) == 1
    assert page(text) == text, RENEW


def test_it_has_every_verb_with_its_usage() -> None:
    text = PAGE.read_text()
    for verb in VERBS:
        assert f"\n#### trainmaster {verb}\n\n```\ntrainmaster {verb}" in text, RENEW


def test_options_and_verbs_of_groups_are_in_it() -> None:
    text = PAGE.read_text()
    assert "\n#### trainmaster rules apply\n" in text
    assert "| `--context NAME` | " in text
    assert "FILE..." in text.partition("#### trainmaster rules apply")[2].partition("####")[0]
