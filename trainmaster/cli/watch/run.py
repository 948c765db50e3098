"""A watched run on the terminal: its timeline, and below it its replicas or trials."""

import math
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from itertools import islice

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from trainmaster.cli.logs.bars import NAME_MAX_CHARS, numbers_of, progress_bars
from trainmaster.cli.study.board import TrialBoard
from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress, epoch_text
from trainmaster.client.shown.machine_lines import now_lines
from trainmaster.client.shown.run_lines import QUEUED_LONG, progress_facts, queued_text
from trainmaster.client.study.study import Study, number
from trainmaster.client.terminal import one_line
from trainmaster.client.watch.now import with_progress
from trainmaster.client.watch.sighting import Sighting
from trainmaster.client.watch.timeline import AFTER_TRAINING, OF_EACH_JOB, WAITING, RunStage, timeline
from trainmaster.orchestrator.core.admission.start_deadline import queued_job
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.runs.record import metrics_of

FRAME_LINES, FRAME_COLUMNS = 2, 4
LEAST_LINES = 3
DOING_LINES, NOTE_LINES = 2, 3
GAP = 2
DETAIL_MAX_CHARS = 2000
METRICS_SHOWN, METRIC_MAX_CHARS = 20, 40
REPLICAS_SHOWN = 4
REFRESHES_PER_S = 8
SPINNER_LINES = 1

Line = tuple[str, str]
"""A key that stays the same for the same news, and its line."""


class RunView:
    """Shows sightings as they come.

    On a terminal the picture is redrawn in place, above a spinner that says what is under way. Elsewhere (a file, a
    pipe, CI) each line of the news is printed once.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._last: Sighting | None = None
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
                last = Text() if self._last is None else picture(self._last, self._console)
                live.update(last, refresh=True)

    def show(self, seen: Sighting) -> None:
        """Show how things stand."""
        self._last = seen
        if self._live is not None:
            parts = Group(picture(seen, self._console), self._doing_now(doing(seen)))
            self._live.update(parts, refresh=True)
            return
        for key, line in news(seen):
            if key not in self._printed:
                self._printed.add(key)
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _doing_now(self, text: str) -> Spinner:
        """The one spinner, so that it does not begin again each time something changes."""
        self._spinner.update(text=Text(one_line(text), style="dim", no_wrap=True, overflow="ellipsis"))
        return self._spinner


def picture(seen: Sighting, console: Console) -> RenderableType:
    """The timeline, and below it as many replicas or trials as the terminal has lines for."""
    width = console.size.width - FRAME_COLUMNS
    above = timeline_panel(timeline(seen), title=f"Run {seen.run.record.run_id}", width=width)
    extra = [Text(line, style="bold") for line in _wrapped_lines(_metrics_text(seen), width, NOTE_LINES)]
    extra += [Text(line, style="yellow") for line in _progress_lines(seen)[1:]]
    extra += [Text(line, no_wrap=True) for line in now_lines(seen.machines, REPLICAS_SHOWN)]
    last_warning = seen.warnings[-1] if seen.warnings else ""
    extra += [Text(line, style="yellow") for line in _wrapped_lines(last_warning, width, NOTE_LINES)]
    used = len(console.render_lines(above)) + len(extra) + FRAME_LINES + SPINNER_LINES + 1
    title, below = _picture_below(seen, width=width, height=max(LEAST_LINES, console.size.height - used))
    if below is None and not extra:
        return above
    parts = extra if below is None else [below, *extra]
    return Group(above, Panel(Group(*parts), title=Text(title), title_align="left"))


def _picture_below(seen: Sighting, *, width: int, height: int) -> tuple[str, RenderableType | None]:
    """A title, and the trials, the progress of the replicas, their last lines, or what is under way."""
    if seen.study is not None:
        board = board_of(seen, seen.study)
        return board.title, board.table(width=width, height=height)
    if seen.training.replicas:
        of_weights = [f"weights {one_line(weights, 40)}"] if (weights := seen.training.weights) else []
        title = ", ".join(["Training", *of_weights, *_progress_lines(seen)[:1]])
        return title, progress_bars(seen.training, width=width, most=max(1, height - 1))
    if seen.last_lines:
        return "Last lines", _last_lines(seen, width, height)
    if seen.run.record.ended:
        return "Result", None
    return "Training", Text("\n".join(_wrapped_lines(doing(seen), width, DOING_LINES)), style="dim")


def _last_lines(seen: Sighting, width: int, height: int) -> Table:
    """A line for each of the first replicas, as many as there is room for."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    lanes = {one_line(lane, NAME_MAX_CHARS): text for lane, text in sorted(seen.last_lines.items())[:height]}
    room = width - GAP - max(map(len, lanes))
    for lane, text in lanes.items():
        line = Text(cut(one_line(text, DETAIL_MAX_CHARS), room), no_wrap=True)
        table.add_row(Text(lane, style="bold", no_wrap=True), line)
    return table


def _metrics_text(seen: Sighting) -> str:
    """For example `accuracy 0.93  loss 0.2`; empty before there are any."""
    finite = ((name, value) for name, value in metrics_of(seen.run.record).items() if math.isfinite(value))
    named = islice(finite, METRICS_SHOWN)
    return "  ".join(f"{one_line(name, METRIC_MAX_CHARS)} {number(value)}" for name, value in named)


def _progress_lines(seen: Sighting) -> list[str]:
    """How much is done and how long the rest takes; then warnings. Empty while the log does not say it."""
    facts = progress_facts(with_progress(seen.run, seen.training).record, seen.at)
    return [line for _, lines in facts for line in lines]


def _wrapped_lines(text: str, width: int, most: int) -> list[str]:
    return textwrap.wrap(one_line(text, DETAIL_MAX_CHARS), width, max_lines=most, placeholder=" …")


def board_of(seen: Sighting, study: Study) -> TrialBoard:
    """The study's table of trials, each with the epoch and the last lines that it has logged."""
    return TrialBoard(study=study, at=seen.at, progress=epochs(seen.training), last_lines=seen.last_lines)


def epochs(training: TrainingProgress) -> dict[str, str]:
    """The epoch of the furthest replica by trial id, for example `epoch 3/10`, for those that have logged one."""
    by_trial: dict[str, ReplicaProgress] = {}
    for lane, replica in training.replicas.items():
        trial_id = lane.rpartition("/")[0]
        if replica.epochs and replica.steps_done >= by_trial.get(trial_id, replica).steps_done:
            by_trial[trial_id] = replica
    return {trial_id: epoch_text(replica) for trial_id, replica in by_trial.items()}


def doing(seen: Sighting) -> str:
    """What is under way: while no replica has started to train, the last line of the training service."""
    record = seen.run.record
    if record.job is None:
        waiting = record.admission.waiting
        return (
            f"{record.state}: {waiting.reason}" if waiting else f"{record.state}: the job is being submitted"
        )
    if record.ended:
        return f"the run is over: {record.state}"
    if seen.job_ended_at is not None:
        return "the record is being closed"
    if seen.job_started_at is None and (text := queued_text(queued_job(record), seen.at, QUEUED_LONG)):
        return text
    if seen.service_line and not seen.training.replicas and not seen.last_lines:
        return seen.service_line
    state = (seen.job_state or str(record.job.state)).removeprefix("JOB_STATE_").lower()
    return f"the job is {state}"


def timeline_panel(stages: Sequence[RunStage], *, title: str, width: int) -> Panel:
    """One line a stage; times count from the first. Details that are too long for `width` columns are cut."""
    table = Table.grid(padding=(0, GAP, 0, 0))
    start = _start(stages)
    times = [_time_text(stage, start) for stage in stages]
    room = width - 1 - 3 * GAP - max(len(stage.title) for stage in stages) - max(map(len, times))
    for stage, time in zip(stages, times, strict=True):
        has_passed = stage.at is not None
        table.add_row(
            Text("●", style="green") if has_passed else Text("○", style="dim"),
            Text(stage.title, style="" if has_passed else "dim", no_wrap=True),
            Text(time, justify="right", no_wrap=True),
            Text(_cut(one_line(stage.detail), room) if has_passed else "", style="cyan", no_wrap=True),
        )
    return Panel(table, title=Text(title, no_wrap=True, overflow="ellipsis"), title_align="left")


def _cut(text: str, room: int) -> str:
    """Names of resources lose their beginning, which all of a project share; sentences lose their end."""
    if len(text) <= room or " " in text:
        return cut(text, room)
    return f"…{text[len(text) - room + 1 :]}"


def news(seen: Sighting) -> Iterator[Line]:
    """A line for each stage that was passed, each quarter of a replica's steps, each trial, and each warning.

    Of a program whose progress is not known, each new last line of its first replica.
    """
    stages = timeline(seen)
    after = next((place for place, stage in enumerate(stages) if stage.title in AFTER_TRAINING), len(stages))
    yield from stage_news(stages[:after], _start(stages))
    # What the service logs before a program trains, and its warnings later.
    has_trained = seen.training.replicas or seen.job_ended_at
    service = seen.warnings if has_trained else seen.service_lines
    yield from ((f"service {text}", _indented_line(text)) for text in service)
    if seen.study is not None:
        yield from ((key, _indented_line(line)) for key, line in board_of(seen, seen.study).news())
    else:
        yield from _progress(seen)
        yield from _last_line(seen)
    for warning in _progress_lines(seen)[1:]:
        yield f"pace {warning.split()[1]}", _indented_line(warning)
    yield from stage_news(stages[after:], _start(stages))
    if metrics := _metrics_text(seen):
        yield f"metrics {metrics}", _indented_line(metrics)


def _indented_line(text: str) -> str:
    return f"{'':>9}  {one_line(text, DETAIL_MAX_CHARS)}"


def _progress(seen: Sighting) -> Iterator[Line]:
    for replica in sorted(seen.training.replicas.values(), key=lambda replica: replica.replica):
        numbers = numbers_of(replica)
        passed = numbers if replica.share is None else int(4 * replica.share)
        if replica.metrics:
            yield f"{replica.replica} {passed}", _indented_line(f"{replica.replica}  {numbers}")


def _last_line(seen: Sighting) -> Iterator[Line]:
    if not seen.training.replicas and seen.last_lines:
        lane, text = min(seen.last_lines.items())
        if line := one_line(text, DETAIL_MAX_CHARS).strip():
            yield f"{lane} {line}", _indented_line(f"{one_line(lane, NAME_MAX_CHARS)}  {line}")


def stage_news(stages: Iterable[RunStage], start: datetime | None) -> Iterator[Line]:
    """A line for each stage that was passed."""
    for stage in stages:
        if stage.at is not None:
            detail = one_line(stage.detail, DETAIL_MAX_CHARS)
            key = f"{stage.title} {stage.at}" if stage.title in OF_EACH_JOB else stage.title
            key = f"{key} {detail}" if stage.title == WAITING else key
            yield key, f"{_time_text(stage, start):>9}  {stage.title}  {detail}".rstrip()


def _start(stages: Sequence[RunStage]) -> datetime | None:
    return next((stage.at for stage in stages if stage.at), None)


def _time_text(stage: RunStage, start: datetime | None) -> str:
    return f"+{(stage.at - start).total_seconds():.1f} s" if stage.at and start else ""
