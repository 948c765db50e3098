"""A demo on the terminal: a live picture where it can move, one line an event where it cannot."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

from rich.console import Console, RenderableType
from rich.live import Live

REFRESHES_PER_S = 8

S = TypeVar("S")
Line = tuple[str, str]
"""A key that stays the same for the same news, and its line."""
Picture: TypeAlias = Callable[[S, Console], RenderableType]
News: TypeAlias = Callable[[S], Iterable[Line]]


class View(Generic[S]):
    """Shows sightings as they come.

    On a terminal the picture is redrawn in place. Elsewhere (a file, a pipe, CI) each
    line of the news is printed once.
    """

    def __init__(self, console: Console, *, picture: Picture[S], news: News[S]) -> None:
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
