"""A study on the terminal: a table of trials that fits, and news for a terminal that cannot move."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from trainmaster.client.study.study import Study, StudyTrial, counts, number, shown
from trainmaster.client.terminal import one_line, plural
from trainmaster.orchestrator.core.completion.explanation import without_log_link
from trainmaster.orchestrator.core.completion.replica_exit import parse_exit
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState

VALUE_CHARS, METRIC_CHARS, GAP = 18, 40, 2
LINE_CHARS = 200
FIRST_PARAMETERS = 3
"""On a narrow terminal, this many precede progress and times; the others follow."""
_STYLES = {TrialState.SUCCEEDED: "green", TrialState.INFEASIBLE: "red", TrialState.STOPPING: "yellow"}


@dataclass(frozen=True)
class _Column:
    """`rank` 0 is always shown; the smaller the rank, the longer a column stays as the terminal narrows."""

    heading: str
    cells: Sequence[str]
    rank: int
    is_parameter: bool = False

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.heading, *self.cells)), default=0) + GAP


@dataclass(frozen=True, kw_only=True)
class TrialBoard:
    """A study at one moment; `progress` holds, by trial id, how far a trial said it is."""

    study: Study
    at: datetime
    progress: Mapping[str, str] = field(default_factory=dict)
    last_lines: Mapping[str, str] = field(default_factory=dict)
    """By lane, for example `3/workerpool0-0`: what the replica of a trial wrote last."""

    @property
    def title(self) -> str:
        """For example `Trials: accuracy, higher is better`."""
        better = "higher" if self.study.goal is Goal.MAXIMIZE else "lower"
        return f"Trials: {one_line(self.study.metric, METRIC_CHARS)}, {better} is better"

    def table(self, *, width: int, height: int) -> Table:
        """At most `height` lines and `width` columns: running trials first, then the best; the rest is counted.

        What does not fit into the width is left out as whole columns; parameters that are, are counted.
        """
        trials, left_out = choose(self.study, most=max(1, height - 2))
        columns = self._fitting(self._columns(trials), width)
        table = Table(box=None, padding=(0, GAP, 0, 0), header_style="bold", pad_edge=False)
        for column in columns:
            justify: Literal["left", "right"] = "left" if column.heading in {"trial", "state"} else "right"
            table.add_column(Text(column.heading), justify=justify, no_wrap=True)
        for place, trial in enumerate(trials):
            best = "bold green" if trial is self.study.best else ""
            row = [Text(column.cells[place], style=best) for column in columns]
            row[1].stylize(_STYLES.get(trial.state, ""))
            table.add_row(*row)
        hidden = len(self.study.parameters) - sum(column.is_parameter for column in columns)
        said = [f"{plural(len(left_out), 'more trial')}: {counts(left_out)}"] if left_out else []
        said += [plural(hidden, "more parameter")] if hidden else []
        if said:
            table.caption = Text("; ".join(said), style="dim")
            table.caption_justify = "left"
        return table

    def _columns(self, trials: Sequence[StudyTrial]) -> list["_Column"]:
        """Every column that has something to say, from left to right."""
        study = self.study
        names = [one_line(trial.id, 8) + (" ★" if trial is study.best else "") for trial in trials]
        last = [trial.measurements[-1].value if trial.measurements else trial.final for trial in trials]
        going_on = any(not trial.state.ended for trial in trials)
        found = [
            _Column("trial", names, rank=0),
            _Column("state", [trial.word.upper() for trial in trials], rank=0),
        ]
        for number_, parameter in enumerate(study.parameters):
            heading = one_line(parameter.name, VALUE_CHARS)
            cells = [one_line(shown(trial.parameters.get(parameter.name)), VALUE_CHARS) for trial in trials]
            rank = 1 if number_ < FIRST_PARAMETERS else 3
            found.append(_Column(heading, cells, rank=rank, is_parameter=True))
        if going_on:  # where all have ended, all went as far as they could
            found.append(_Column("progress", [self.progress_of(trial) for trial in trials], rank=2))
        return [
            *found,
            _Column("last", [shown(value) for value in last], rank=0),
            _Column("best", [shown(study.best_measured(trial)) for trial in trials], rank=0),
            _Column("elapsed", [seconds(trial.elapsed(self.at)) for trial in trials], rank=2),
        ]

    @staticmethod
    def _fitting(columns: Sequence["_Column"], width: int) -> list["_Column"]:
        """As many as fit, the most important first; those of rank 0 and one parameter always."""
        kept: set[int] = set()
        for place, column in sorted(enumerate(columns), key=lambda each: (each[1].rank, each[0])):
            width -= column.width
            is_needed = column.rank == 0 or not any(columns[each].is_parameter for each in kept)
            if width >= 0 or is_needed:
                kept.add(place)
            else:
                width += column.width
        return [column for place, column in enumerate(columns) if place in kept]

    def progress_of(self, trial: StudyTrial) -> str:
        """What the trainer said; else the step of the last measurement."""
        steps = f"step {trial.measurements[-1].step}" if trial.measurements else ""
        return self.progress.get(trial.id, steps)

    def news(self) -> Iterator[tuple[str, str]]:
        """A trial's start with its parameters, its end with its value: a lasting key and the line."""
        for trial in self.study.trials:
            if trial.start_time is not None or trial.state.ended:
                yield f"start {trial.id}", f"trial {trial.id} started  {assignments(trial)}"
            if trial.state.ended:
                yield f"end {trial.id}", f"trial {trial.id} {self._ending(trial)}"

    def _ending(self, trial: StudyTrial) -> str:
        after = seconds(trial.elapsed(self.at))
        said = trial.word + (f" after {after}" if after else "")
        if trial.state is TrialState.INFEASIBLE:
            return f"{said}: {self._reason(trial)}"
        value = "no value" if trial.final is None else number(trial.final)
        return f"{said}  {one_line(self.study.metric)} {value}"

    def _reason(self, trial: StudyTrial) -> str:
        """The exit of its replica and what that wrote last, or the service's words without their long link."""
        exited = parse_exit(trial.infeasible_reason)
        line = one_line(self.last_lines.get(f"{trial.id}/{exited.replica}", ""), LINE_CHARS) if exited else ""
        if exited is None or not line.strip():
            return one_line(without_log_link(trial.infeasible_reason)) or "no reason given"
        return f"{exited.replica} exited with status {exited.status}, its last line: {line.strip()}"


def choose(study: Study, *, most: int) -> tuple[list[StudyTrial], list[StudyTrial]]:
    """At most `most` trials to show, in the order of the study, and the rest: running ones first, then the best."""
    running = [trial for trial in study.trials if not trial.state.ended]
    unranked = [trial for trial in study.trials if trial.state.ended and trial.result is None]
    wanted = {trial.id for trial in [*running, *study.trials_by_rank(), *unranked][:most]}
    best = study.best
    if best is not None and best.id not in wanted and most > 1:  # many run at once: the best stays in sight
        wanted = {trial.id for trial in [best, *running][:most]}
    shown_ = [trial for trial in study.trials if trial.id in wanted]
    return shown_, [trial for trial in study.trials if trial.id not in wanted]


def assignments(trial: StudyTrial) -> str:
    """For example `learning_rate=0.01 num_units=128`."""
    return " ".join(f"{one_line(name)}={shown(value)}" for name, value in trial.parameters.items())


def seconds(duration: timedelta | None) -> str:
    """Seconds below two minutes, then minutes, then hours; empty for None."""
    if duration is None:
        return ""
    total = max(0, int(duration.total_seconds()))
    if total < 120:  # noqa: PLR2004 - two minutes
        return f"{total} s"
    minutes, rest = divmod(total, 60)
    return f"{minutes}:{rest:02} min" if minutes < 120 else f"{minutes // 60}:{minutes % 60:02} h"  # noqa: PLR2004 - two hours
