"""Tables and labelled lines: as wide as the terminal, and whole in a pipe."""

import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

import click

from trainmaster.client.terminal import STATE, Fact, one_line

GAP = "  "
COLOURS: Mapping[str, str] = {
    "succeeded": "green", "failed": "red", "rejected": "red", "expired": "red", "dead_letter": "red",
    "running": "cyan", "submitted": "cyan", "reserved": "yellow", "waiting": "yellow", "retrying": "yellow",
    "cancelled": "magenta", "timed_out": "magenta", "partially_succeeded": "magenta",
}  # fmt: skip
"""Colours of states, on a terminal."""


def print_table(rows: Sequence[Mapping[str, str]], *, spare: Sequence[str] = ()) -> None:
    """Print rows under the keys of the first one, which are their columns.

    On a terminal that is too narrow, columns of `spare` are left out, in that order; what remains is never cut or wrapped
    by us. In a pipe, every column is whole.
    """
    for line in table_lines(rows, width=terminal_width(), spare=spare):
        click.echo(line)


def table_lines(
    rows: Sequence[Mapping[str, str]], *, width: int | None, spare: Sequence[str] = ()
) -> list[str]:
    """The lines of the table; `width` None is that of a pipe."""
    if not rows:
        return []
    widths = {title: max(len(title), *(len(row[title]) for row in rows)) for title in rows[0]}
    for title in spare:
        if width is None or sum(widths.values()) + len(GAP) * (len(widths) - 1) <= width:
            break
        del widths[title]
    header = {title: title for title in widths}
    return [_line(row, widths, is_header=row is header) for row in (header, *rows)]


def _line(row: Mapping[str, str], widths: Mapping[str, int], *, is_header: bool) -> str:
    *before, last = widths
    cells = [f"{row[title]:{widths[title]}}" for title in before] + [row[last]]
    if is_header:
        return click.style(GAP.join(cells).rstrip(), bold=True)
    return GAP.join(with_colour(cell) for cell in cells).rstrip()


def with_colour(text: str) -> str:
    """The text in the colour of the state that it names, if it names one. `click.echo` removes colours in a pipe."""
    colour = COLOURS.get(text.strip())
    return click.style(text, fg=colour) if colour else text


def terminal_width() -> int | None:
    """The columns of the terminal; None if standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


_LABEL_CHARS = 11


def print_facts(facts: Iterable[Fact]) -> None:
    """Print labels, each with its text beside it; see `fact_lines`."""
    for line in fact_lines(facts, width=terminal_width()):
        click.echo(line)


def fact_lines(facts: Iterable[Fact], *, width: int | None) -> Iterator[str]:
    """Lines of text behind their label. On a terminal, long ones are wrapped between words; words are never cut."""
    for label, lines in facts:
        for number, line in enumerate(lines):
            shown = click.style(f"{label:{_LABEL_CHARS}}", bold=True) if number == 0 else " " * _LABEL_CHARS
            for part in _wrapped_lines(line, width):
                word, blank, rest = part.partition(" ")
                text = f"{with_colour(word)}{blank}{rest}" if label == STATE and number == 0 else part
                yield f"{shown}{GAP}{text}".rstrip()
                shown = " " * _LABEL_CHARS


def _wrapped_lines(line: str, width: int | None) -> list[str]:
    text = one_line(line)
    if width is None or len(text) <= width - _LABEL_CHARS - len(GAP):
        return [text]
    room, indent = width - _LABEL_CHARS - len(GAP), " " * (len(text) - len(text.lstrip()))
    wrapper = textwrap.TextWrapper(
        max(room, len(indent) + 1), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return wrapper.wrap(text)
