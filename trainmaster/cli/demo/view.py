"""A demo on the terminal: a live picture where it can move, one line an event where it cannot."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Generic, TypeVar

from rich.console import Console, OverflowMethod, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.way import Hop

REFRESHES_PER_S = 8

News = tuple[str, str]
"""A key that stays the same for the same news, and its line."""

S = TypeVar("S")


class View(Generic[S]):
    """Shows sightings as they come.

    On a terminal the picture is redrawn in place. Elsewhere (a file, a pipe, CI) each
    line of the news is printed once.
    """

    def __init__(
        self,
        console: Console,
        *,
        picture: Callable[[S, Console], RenderableType],
        news: Callable[[S], Iterable[News]],
    ) -> None:
        self._console, self._picture, self._news = console, picture, news
        self._live: Live | None = None
        self._printed: set[str] = set()

    @contextmanager
    def running(self) -> Iterator[None]:
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, refresh_per_second=REFRESHES_PER_S) as live:
            self._live = live
            try:
                yield
            finally:
                self._live = None

    def show(self, seen: S) -> None:
        if self._live is not None:
            self._live.update(self._picture(seen, self._console))
            return
        for key, line in self._news(seen):
            if key not in self._printed:
                self._printed.add(key)
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def way_panel(hops: Iterable[Hop], start: datetime, *, one_line_each: bool = False) -> Panel:
    """The whole way as it stands; times count from `start`. Long details are folded, or else cut off."""
    table = Table.grid(padding=(0, 2))
    for hop in hops:
        table.add_row(*_hop_cells(hop, start, one_line=one_line_each))
    return Panel(table, title="The way of the request", title_align="left")


def _hop_cells(hop: Hop, start: datetime, *, one_line: bool) -> tuple[RenderableType, ...]:
    passed = hop.at is not None
    mark = Text("●", style="green") if passed else Text("○", style="dim")
    overflow: OverflowMethod = "ellipsis" if one_line else "fold"
    detail = Text(hop.detail if passed else "", style="cyan", overflow=overflow, no_wrap=one_line)
    return (
        mark,
        Text(hop.title, style="" if passed else "dim", no_wrap=one_line),
        Text(_since(hop, start), justify="right", no_wrap=one_line),
        detail,
    )


def hop_news(hops: Iterable[Hop], start: datetime) -> Iterator[News]:
    """A line for each hop that was passed."""
    for hop in hops:
        if hop.at is not None:
            yield hop.title, f"{_since(hop, start):>9}  {hop.title}  {hop.detail}".rstrip()


def _since(hop: Hop, start: datetime) -> str:
    return f"+{(hop.at - start).total_seconds():.1f} s" if hop.at else ""
