"""Writes the pages of verbs, and their list in docs/reference/command.md: `python -m tests.repo.commands`."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from trainmaster.cli.command import SECTIONS, verbs

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "command.md"
FOLDER = PAGE.parent / "verbs"
MARKER = "<!-- What follows is written by: python -m tests.repo.commands -->"
SKIPPED = ("--help", "-h, --help")
HEAD = """\
# {title}: the verbs

Usage and options of each verb, as `trainmaster VERB --help` prints them. [The command](../command.md) says how to use them.
`python -m tests.repo.commands` writes this page: do not edit it.
"""


def pages() -> Mapping[Path, str]:
    """Every page with what the command says now: a page for each section of `trainmaster --help`, and their list."""
    above = PAGE.read_text().partition(MARKER)[0].rstrip()
    found = {FOLDER / _file(title): "\n".join(_section(title)) + "\n" for title in SECTIONS}
    return {PAGE: f"{above}\n\n{MARKER}\n\n" + "\n".join(_list()) + "\n", **found}


def _file(title: str) -> str:
    return f"{title.lower().replace(' ', '-')}.md"


def _list() -> Iterator[str]:
    yield "## Verbs\n\n| page | verbs |\n|---|---|"
    for title, entries in SECTIONS.items():
        page = f"verbs/{_file(title)}"
        links = ", ".join(f"[{name}]({page}#trainmaster-{name})" for name in entries)
        yield f"| [{title}]({page}) | {links} |"


def _section(title: str) -> Iterator[str]:
    yield HEAD.format(title=title).rstrip()
    root = click.Context(verbs, info_name="trainmaster")
    for name in SECTIONS[title]:
        command = verbs.get_command(root, name)
        assert command is not None, name
        yield from _described(command, click.Context(command, info_name=name, parent=root), "##")


def _described(command: click.Command, call: click.Context, level: str) -> Iterator[str]:
    yield f"\n{level} {call.command_path}\n"
    usage = " ".join([call.command_path, *command.collect_usage_pieces(call)])
    yield f"```\n{usage}\n```"
    yield from _help(command)
    yield from _options(command, call)
    if isinstance(command, click.Group):
        for name in command.list_commands(call):
            below = command.get_command(call, name)
            assert below is not None, name
            yield from _described(below, click.Context(below, info_name=name, parent=call), f"{level}#")


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
    for page, text in pages().items():
        page.parent.mkdir(exist_ok=True)
        page.write_text(text)
