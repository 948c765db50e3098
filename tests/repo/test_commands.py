"""The reference of the command is what the command says now."""

import click
import pytest

from tests.repo.commands import FOLDER, MARKER, PAGE, pages
from trainmaster.cli.command import VERBS, verbs

RENEW = "write it again: python -m tests.repo.commands"
TEXT = "\n".join(path.read_text() for path in sorted(FOLDER.iterdir()))


def test_the_reference_is_written_from_the_command() -> None:
    assert PAGE.read_text().count(MARKER) == 1
    expected = pages()
    assert {path: path.read_text() for path in [PAGE, *FOLDER.iterdir()]} == expected, RENEW


def test_it_has_every_verb_with_its_usage() -> None:
    for verb in VERBS:
        assert f"\n## trainmaster {verb}\n\n```\ntrainmaster {verb}" in TEXT, RENEW


@pytest.mark.parametrize("name", [None, *VERBS])
def test_no_verb_is_cut_in_a_list_of_verbs(name: str | None) -> None:
    root = click.Context(verbs, info_name="trainmaster", terminal_width=80)
    group = verbs if name is None else verbs.get_command(root, name)
    if isinstance(group, click.Group):
        listed = group.get_help(click.Context(group, info_name="x", parent=root, terminal_width=80))
        assert "..." not in listed.partition("Commands:")[2]


def test_options_and_verbs_of_groups_are_in_it() -> None:
    assert "\n### trainmaster rules apply\n" in TEXT
    assert "| `--context NAME` | " in TEXT
    assert "FILE..." in TEXT.partition("### trainmaster rules apply")[2].partition("##")[0]
