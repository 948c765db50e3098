"""The reference of the command is what the command says now."""

import click
import pytest

from tests.repo.commands import FOLDER, MARKER, PAGE, pages
from trainmaster.cli.command import VERBS, verbs

RENEW = "write it again: python -m tests.repo.commands"


def test_the_reference_is_written_from_the_command() -> None:
    assert PAGE.read_text().count(MARKER) == 1
    expected = pages()
    assert {path: path.read_text() for path in [PAGE, *FOLDER.iterdir()]} == expected, RENEW


@pytest.mark.parametrize("name", [None, *VERBS])
def test_no_verb_is_cut_in_a_list_of_verbs(name: str | None) -> None:
    root = click.Context(verbs, info_name="trainmaster", terminal_width=80)
    group = verbs if name is None else verbs.get_command(root, name)
    if isinstance(group, click.Group):
        listed = group.get_help(click.Context(group, info_name="x", parent=root, terminal_width=80))
        assert "..." not in listed.partition("Commands:")[2]
