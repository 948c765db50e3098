"""A study on the terminal: a table of trials that fits, and news for a terminal that cannot move."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rich.table import Table
from rich.text import Text

from console.study.study import Study, Trial, TrialState, counts, number, printable, short, shown

PARAMETER_WIDTH, OTHER_WIDTH = 12, 64
"""Columns of characters: of one parameter, and of everything else in a row."""
VALUE_CHARS = 24
_STYLES = {TrialState.SUCCEEDED: "green", TrialState.INFEASIBLE: "red", TrialState.STOPPING: "yellow"}


@dataclass(frozen=True, kw_only=True)
class Board:
    """A study at one moment; `progress` holds, by trial id, how far a trial said it is."""

    study: Study
    at: datetime
    progress: Mapping[str, str] = field(default_factory=dict)

    def table(self, *, width: int, height: int) -> Table:
        """At most `height` lines and `width` columns: running trials first, then the best; the rest is counted."""
        trials, left_out = choose(self.study, most=max(1, height - 3))
        parameters = self.study.parameters[: max(1, (width - OTHER_WIDTH) // PARAMETER_WIDTH)]
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        for heading in ("trial", "state"):
            table.add_column(heading, no_wrap=True)
        for parameter in parameters:
            table.add_column(
                Text(short(printable(parameter.name), VALUE_CHARS)),
                justify="right", no_wrap=True, overflow="ellipsis",
            )  # fmt: skip
        metric = short(printable(self.study.metric), VALUE_CHARS)
        for heading in ("progress", metric, "best", "elapsed"):
            table.add_column(Text(heading), justify="right", no_wrap=True, overflow="ellipsis")
        for trial in trials:
            table.add_row(*self._row(trial, [parameter.name for parameter in parameters]))
        hidden = len(self.study.parameters) - len(parameters)
        said = [f"{len(left_out)} more trials: {counts(left_out)}"] if left_out else []
        said += [f"{hidden} more parameters"] if hidden else []
        if said:
            table.caption = Text("; ".join(said), style="dim")
            table.caption_justify = "left"
        return table

    def _row(self, trial: Trial, names: Sequence[str]) -> list[Text]:
        best = trial is self.study.best
        last = trial.measurements[-1].value if trial.measurements else None
        cells = [
            short(printable(trial.id), 8) + (" ★" if best else ""),
            trial.state.value,
            *(short(shown(trial.parameters.get(name)), VALUE_CHARS) for name in names),
            self.progress_of(trial),
            shown(trial.final if trial.final is not None else last),
            shown(self.study.best_measured(trial)),
            seconds(trial.elapsed(self.at)),
        ]
        style = "bold green" if best else ""
        row = [Text(cell, style=style) for cell in cells]
        row[1].stylize(_STYLES.get(trial.state, ""))
        return row

    def progress_of(self, trial: Trial) -> str:
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

    def _ending(self, trial: Trial) -> str:
        after = seconds(trial.elapsed(self.at))
        said = trial.state.value.lower() + (f" after {after}" if after else "")
        if trial.state is TrialState.INFEASIBLE:
            return f"{said}: {printable(trial.infeasible_reason) or 'no reason given'}"
        value = "no value" if trial.final is None else number(trial.final)
        return f"{said}  {printable(self.study.metric)} {value}"


def choose(study: Study, *, most: int) -> tuple[list[Trial], list[Trial]]:
    """At most `most` trials to show, in the order of the study, and the rest: running ones first, then the best."""
    running = [trial for trial in study.trials if not trial.state.ended]
    unranked = [trial for trial in study.trials if trial.state.ended and trial.result is None]
    wanted = {trial.id for trial in [*running, *study.ranked(), *unranked][:most]}
    best = study.best
    if best is not None and best.id not in wanted and most > 1:  # many run at once: the best stays in sight
        wanted = {trial.id for trial in [best, *running][:most]}
    shown_ = [trial for trial in study.trials if trial.id in wanted]
    return shown_, [trial for trial in study.trials if trial.id not in wanted]


def assignments(trial: Trial) -> str:
    """For example `learning_rate=0.01 num_units=128`."""
    return " ".join(f"{printable(name)}={shown(value)}" for name, value in trial.parameters.items())


def seconds(duration: timedelta | None) -> str:
    """Seconds below two minutes, then minutes, then hours; empty for None."""
    if duration is None:
        return ""
    total = max(0, int(duration.total_seconds()))
    if total < 120:  # noqa: PLR2004 - two minutes
        return f"{total} s"
    minutes, rest = divmod(total, 60)
    return f"{minutes}:{rest:02} min" if minutes < 120 else f"{minutes // 60}:{minutes % 60:02} h"  # noqa: PLR2004 - two hours
