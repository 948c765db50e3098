"""A watched thing on the terminal: a live picture where it can move, one line an event where it cannot."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeAlias, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from trainmaster.client.terminal import one_line

REFRESHES_PER_S = 8
SPINNER_LINES = 1

S = TypeVar("S")
Line = tuple[str, str]
"""A key that stays the same for the same news, and its line."""
Picture: TypeAlias = Callable[[S, Console], RenderableType]
News: TypeAlias = Callable[[S], Iterable[Line]]


class LiveView(Generic[S]):
    """Shows sightings as they come.

    On a terminal the picture is redrawn in place, above a spinner that says what is under way. Elsewhere (a file, a
    pipe, CI) each line of the news is printed once.
    """

    def __init__(
        self, console: Console, *, picture: Picture[S], news: News[S], doing: Callable[[S], str]
    ) -> None:
        self._console, self._picture, self._news, self._doing = console, picture, news, doing
        self._live: Live | None = None
        self._last: S | None = None
        self._spinner = Spinner("dots")
        self._printed: set[str] = set()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Show sightings until the block ends."""
        if not self._console.is_terminal:
            yield
            return
        with Live(self._doing_now(""), console=self._console, refresh_per_second=REFRESHES_PER_S) as live:
            self._live = live
            try:
                yield
            finally:  # without the spinner
                self._live = None
                last = Text() if self._last is None else self._picture(self._last, self._console)
                live.update(last, refresh=True)

    def show(self, seen: S) -> None:
        """Show how things stand."""
        self._last = seen
        if self._live is not None:
            self._live.update(
                Group(self._picture(seen, self._console), self._doing_now(self._doing(seen))), refresh=True
            )
            return
        for key, line in self._news(seen):
            if key not in self._printed:
                self._printed.add(key)
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _doing_now(self, text: str) -> Spinner:
        """The one spinner, so that it does not begin again each time something changes."""
        self._spinner.update(text=Text(one_line(text), style="dim", no_wrap=True, overflow="ellipsis"))
        return self._spinner


@contextmanager
def doing(console: Console, what: str) -> Iterator[None]:
    """Say what is under way until the block ends: with a spinner on a terminal, as a line elsewhere."""
    if not console.is_terminal:
        console.print(f"{what}.", markup=False, highlight=False)
        yield
        return
    with console.status(Text(what, style="dim")):
        yield
