"""The progress of replicas, drawn as bars."""

from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress, place_texts
from trainmaster.client.study.study import number
from trainmaster.client.terminal import one_line

BARS_MAX = 8
NAME_MAX_CHARS = 24
NARROW, WIDE, GAP = 10, 32, 2
WIDE_TERMINAL = 100


def progress_bars(training: TrainingProgress, *, width: int, most: int = BARS_MAX) -> Table:
    """A line for each replica that has reported progress, at most `most`.

    Args:
        training: of the job, or of all its trials.
        width: of the terminal; a narrow one gets short bars, and lines are cut at its edge.
        most: the rest is counted in a line below.
    """
    table = Table.grid(padding=(0, GAP, 0, 0))
    bar_width = WIDE if width >= WIDE_TERMINAL else NARROW
    rows = [
        (f"{lane.rpartition('/')[0]}/{replica.replica}".lstrip("/"), replica)
        for lane, replica in sorted(training.replicas.items())
    ]
    names = [one_line(name, NAME_MAX_CHARS) for name, _ in rows[:most]]
    room = width - max(map(len, names), default=0) - bar_width - 2 * GAP
    for name, (_, replica) in zip(names, rows[:most], strict=True):
        bar = ProgressBar(total=1, completed=replica.share or 0, width=bar_width)
        table.add_row(
            Text(name, style="bold", no_wrap=True), bar, Text(numbers_of(replica, room), no_wrap=True)
        )
    if len(rows) > most:
        table.add_row(Text(f"and {len(rows) - most} more", style="dim"))
    return table


def numbers_of(replica: ReplicaProgress, room: int | None = None) -> str:
    """For example `step 5/20  epoch 1/2  loss 1.5  accuracy 0.5`; the last ones only if they fit."""
    parts = place_texts(replica)
    parts += [f"{one_line(name)} {number(value)}" for name, value in replica.metrics.items()]
    while room is not None and len(parts) > 1 and len("  ".join(parts)) > room:
        parts.pop()
    return "  ".join(parts)
