"""Writes the part of docs/reference/command.md that the command itself says: `python -m tests.repo.commands`."""

from collections.abc import Iterator
from pathlib import Path

import click

from trainmaster.cli.command import SECTIONS, verbs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command.md"
MARKER = "<!-- What follows is written by: python -m tests.repo.commands -->"
SKIPPED = ("--help", "-h, --help")


def page(text: str) -> str:
    """The page with everything below the marker written again."""
    above = text.partition(MARKER)[0].rstrip()
    return f"{above}\n\n{MARKER}\n\n" + "\n".join(reference()) + "\n"


def reference() -> Iterator[str]:
    """Every verb by its section in `trainmaster --help`: usage, help and options."""
    root = click.Context(verbs, info_name="trainmaster")
    yield "## Verbs"
    for title, entries in SECTIONS.items():
        yield f"\n### {title}"
        for name in entries:
            command = verbs.get_command(root, name)
            assert command is not None, name
            yield from _described(command, click.Context(command, info_name=name, parent=root))


def _described(command: click.Command, call: click.Context) -> Iterator[str]:
    yield f"\n#### {call.command_path}\n"
    usage = " ".join([call.command_path, *command.collect_usage_pieces(call)])
    yield f"```\n{usage}\n```"
    yield from _help(command)
    yield from _options(command, call)
    if isinstance(command, click.Group):
        for name in command.list_commands(call):
            below = command.get_command(call, name)
            assert below is not None, name
            yield from _described(below, click.Context(below, info_name=name, parent=call))


def _help(command: click.Command) -> Iterator[str]:
    """The paragraphs; one that click prints as it is, behind the character that marks it, becomes a block."""
    for paragraph in filter(None, ((command.help or "").strip().split("\n\n"))):
        lines = [line.strip() for line in paragraph.strip().splitlines()]
        if lines[0] == "\b":
            yield "\n```\n" + "\n".join(lines[1:]) + "\n```"
        else:
            yield "\n" + " ".join(lines)
    if command.epilog:
        yield f"\n{command.epilog}"


def _options(command: click.Command, call: click.Context) -> Iterator[str]:
    options = [each for each in command.get_params(call) if isinstance(each, click.Option)]
    records = [record for each in options if (record := each.get_help_record(call))]
    rows = [(name, text) for name, text in records if name not in SKIPPED]
    if not rows:
        return
    yield "\n| option | meaning |\n|---|---|"
    for name, text in rows:
        yield f"| `{_cell(name)}` | {_cell(text)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
