"""The reference of the command is what the command says now."""

import click
import pytest

from tests.repo.commands import MARKER, PAGE, page
from trainmaster.cli.command import VERBS, verbs

RENEW = "write it again: python -m tests.repo.commands"


def test_the_reference_is_written_from_the_command() -> None:
    text = PAGE.read_text()
    assert text.count(MARKER) == 1
    assert page(text) == text, RENEW


def test_it_has_every_verb_with_its_usage() -> None:
    text = PAGE.read_text()
    for verb in VERBS:
        assert f"\n#### trainmaster {verb}\n\n```\ntrainmaster {verb}" in text, RENEW


@pytest.mark.parametrize("name", [None, *VERBS])
def test_no_verb_is_cut_in_a_list_of_verbs(name: str | None) -> None:
    root = click.Context(verbs, info_name="trainmaster", terminal_width=80)
    group = verbs if name is None else verbs.get_command(root, name)
    if isinstance(group, click.Group):
        listed = group.get_help(click.Context(group, info_name="x", parent=root, terminal_width=80))
        assert "..." not in listed.partition("Commands:")[2]


def test_options_and_verbs_of_groups_are_in_it() -> None:
    text = PAGE.read_text()
    assert "\n#### trainmaster rules apply\n" in text
    assert "| `--context NAME` | " in text
    assert "FILE..." in text.partition("#### trainmaster rules apply")[2].partition("####")[0]
