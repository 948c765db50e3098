"""The progress of replicas, drawn as bars."""

from collections.abc import Mapping

from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress
from trainmaster.client.terminal import one_line

BARS_MAX = 8
NAME_MAX_CHARS = 24
NARROW, WIDE, GAP = 10, 32, 2
WIDE_TERMINAL = 100


def progress_bars(training: Mapping[str, TrainingProgress], *, width: int, most: int = BARS_MAX) -> Table:
    """A line for each replica that has logged progress, at most `most`.

    Args:
        training: by trial id, empty for a job without trials.
        width: of the terminal; a narrow one gets short bars, and lines are cut at its edge.
        most: the rest is counted in a line below.
    """
    table = Table.grid(padding=(0, GAP, 0, 0))
    bar_width = WIDE if width >= WIDE_TERMINAL else NARROW
    rows = [
        (f"{trial_id}/{name}" if trial_id else name, replica)
        for trial_id, progress in sorted(training.items())
        for name, replica in sorted(progress.replicas.items())
    ]
    names = [one_line(name, NAME_MAX_CHARS) for name, _ in rows[:most]]
    room = width - max(map(len, names), default=0) - bar_width - 2 * GAP
    for name, (_, replica) in zip(names, rows[:most], strict=True):
        bar = ProgressBar(total=replica.steps_total or 1, completed=replica.steps_done, width=bar_width)
        table.add_row(
            Text(name, style="bold", no_wrap=True), bar, Text(numbers_of(replica, room), no_wrap=True)
        )
    if len(rows) > most:
        table.add_row(Text(f"and {len(rows) - most} more", style="dim"))
    return table


def numbers_of(replica: ReplicaProgress, room: int | None = None) -> str:
    """For example `step 5/20  epoch 1/2  loss 1.500  accuracy 0.50  12 examples/s`; the last ones only if they fit."""
    parts = [f"step {replica.steps_done}/{replica.steps_total or '?'}"]
    if replica.epochs:
        parts.append(f"epoch {max(replica.epoch, 1)}/{replica.epochs}")
    if replica.loss is not None:
        parts.append(f"loss {replica.loss:.3f}")
    if replica.accuracy is not None:
        parts.append(f"accuracy {replica.accuracy:.2f}")
    if replica.examples_per_s is not None:
        parts.append(f"{replica.examples_per_s:.0f} examples/s")
    while room is not None and len(parts) > 1 and len("  ".join(parts)) > room:
        parts.pop()
    return "  ".join(parts)
