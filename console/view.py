"""The demo on the terminal: a live picture where it can move, one line an event where it cannot."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from console.training_progress import ReplicaProgress, TrainingProgress
from console.way import Hop, Sighting, hops

REFRESHES_PER_S = 8


class View:
    """Shows sightings as they come.

    On a terminal the picture is redrawn in place. Elsewhere (a file, a pipe, CI) each hop is
    printed once when it was passed, and each replica's progress at most once a quarter.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
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

    def show(self, seen: Sighting) -> None:
        if self._live is not None:
            self._live.update(picture(seen))
            return
        for key, line in lines(seen):
            if key not in self._printed:
                self._printed.add(key)
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def picture(seen: Sighting) -> RenderableType:
    """The whole way and the training, as they stand."""
    table = Table.grid(padding=(0, 2))
    for hop in hops(seen):
        table.add_row(*_hop_cells(hop, seen.dropped_at))
    return Group(Panel(table, title="The way of the request", title_align="left"), _training(seen.training))


def _hop_cells(hop: Hop, start: datetime) -> tuple[RenderableType, ...]:
    passed = hop.at is not None
    mark = Text("●", style="green") if passed else Text("○", style="dim")
    detail = Text(hop.detail if passed else "", style="cyan", overflow="fold")
    return (
        mark,
        Text(hop.title, style="" if passed else "dim"),
        Text(_since(hop, start), justify="right"),
        detail,
    )


def _since(hop: Hop, start: datetime) -> str:
    return f"+{(hop.at - start).total_seconds():.1f} s" if hop.at else ""


def _training(training: TrainingProgress) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for _, replica in sorted(training.replicas.items()):
        bar = ProgressBar(total=replica.steps_total or 1, completed=replica.steps_done, width=32)
        table.add_row(Text(replica.replica, style="bold"), bar, Text(_numbers(replica)))
    title = f"Training, weights {training.weights}" if training.weights else "Training"
    return Panel(
        table if training.replicas else Text("waiting for the replicas", style="dim"),
        title=title,
        title_align="left",
    )


def _numbers(replica: ReplicaProgress) -> str:
    parts = [f"step {replica.steps_done}/{replica.steps_total or '?'}"]
    if replica.epochs:
        parts.append(f"epoch {max(replica.epoch, 1)}/{replica.epochs}")
    if replica.loss is not None:
        parts.append(f"loss {replica.loss:.3f}")
    if replica.accuracy is not None:
        parts.append(f"accuracy {replica.accuracy:.2f}")
    if replica.images_per_s is not None:
        parts.append(f"{replica.images_per_s:.0f} images/s")
    return "  ".join(parts)


def lines(seen: Sighting) -> Iterator[tuple[str, str]]:
    """News for a terminal that cannot move: a key that stays the same for the same news, and its line."""
    for hop in hops(seen):
        if hop.at is not None:
            yield hop.title, f"{_since(hop, seen.dropped_at):>9}  {hop.title}  {hop.detail}".rstrip()
    for name, replica in sorted(seen.training.replicas.items()):
        quarter = 4 * replica.steps_done // (replica.steps_total or 1)
        if replica.steps_done:
            yield f"{name} {quarter}", f"{'':>9}  {name}  {_numbers(replica)}"
