"""Prints the lines of a run's log: `replica | line` in a pipe, coloured lanes and bars on a terminal."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from trainmaster.cli.logs.bars import progress_bars
from trainmaster.client.logs.line import SERVICE, LogLine
from trainmaster.client.logs.progress import TrainingProgress
from trainmaster.client.terminal import one_line, visible

COLOURS = ("cyan", "green", "magenta", "blue", "yellow", "bright_cyan", "bright_green", "bright_magenta")
SHOWN_SEVERITIES = {"WARNING": "yellow", **dict.fromkeys(("ERROR", "CRITICAL", "ALERT", "EMERGENCY"), "red")}
"""Severities that a line shows, with their colours."""
LANE_MAX_CHARS = 80
LANES_MAX = 10_000
"""Lanes whose colour is kept: more replicas than a job can have."""


class LogPrinter:
    """Prints lines as they come.

    On a terminal, lines of progress become a bar for each replica, below the log; elsewhere every line is printed,
    without colour, and nothing is cut. Of a line that its program wrote again, the last version is printed.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._colours: dict[str, str] = {SERVICE: "dim"}
        self._training = TrainingProgress()
        self._width = 0
        self._spinner = Spinner("dots")

    @contextmanager
    def following(self, state: str) -> Iterator[None]:
        """Keep the bars and what the run is doing below the log, on a terminal."""
        self.say(state)
        if not self._console.is_terminal:
            yield
            return
        with Live(console=self._console, get_renderable=self.below, transient=True):
            yield

    def say(self, state: str) -> None:
        """What the run is doing, below the log."""
        self._spinner.update(text=Text(one_line(state), style="dim", no_wrap=True, overflow="ellipsis"))

    def show(self, lines: Sequence[LogLine]) -> None:
        for line in lines:
            if self._console.is_terminal and _is_step(line):
                self._training = self._training.after(line)
            else:
                self._print(line)

    def finish(self) -> None:
        """Leave the bars as they are at the end."""
        if self._training.replicas:
            self._console.print(progress_bars(self._training, width=self._console.width))

    def _print(self, line: LogLine) -> None:
        if not isinstance(line.payload, str) and not line.text.strip():
            return  # a blank line of a traceback, in the service's wrapping
        lane = one_line(line.lane, LANE_MAX_CHARS)
        self._width = max(self._width, len(lane)) if self._console.is_terminal else 0
        word = line.label if line.label in SHOWN_SEVERITIES else ""
        style = SHOWN_SEVERITIES.get(line.level, "")
        for part in visible(line.text).splitlines() or [""]:
            shown = Text(f"{lane:<{self._width}} | ", style=self._colour(lane))
            shown.append(f"{word} " if word else "", style=f"bold {style}")
            shown.append(one_line(part), style=style)
            self._console.print(shown, soft_wrap=True)

    def _colour(self, lane: str) -> str:
        if lane not in self._colours and len(self._colours) < LANES_MAX:
            self._colours[lane] = COLOURS[(len(self._colours) - 1) % len(COLOURS)]
        return self._colours.get(lane, "")

    def below(self) -> RenderableType:
        """The bars, if any replica has logged progress, and what the run is doing."""
        if not self._training.replicas:
            return self._spinner
        return Group(progress_bars(self._training, width=self._console.width), self._spinner)


def _is_step(line: LogLine) -> bool:
    """Whether a document reports a step, with every number that a bar needs."""
    report = line.reports[0] if line.reports and not isinstance(line.payload, str) else None
    return report is not None and None not in (report.step, report.steps, report.epoch, report.epochs)
