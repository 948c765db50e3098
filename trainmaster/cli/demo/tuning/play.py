"""`make demo-tuning`: one request becomes six trials, two at a time, and the best one's model."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from trainmaster.cli.demo.stage import Demo
from trainmaster.cli.demo.tuning.report import report
from trainmaster.cli.demo.view import Line
from trainmaster.cli.demo.watch import Sighting
from trainmaster.cli.demo.way import Hop, hop_news, way_panel, whole_way
from trainmaster.cli.study.study import counts
from trainmaster.resources import ROOT

LAST_TRIAL_ENDS = "Last trial ends"
LEAST_LINES = 5
FRAME_LINES, FRAME_COLUMNS = 2, 4


def hops(seen: Sighting) -> list[Hop]:
    """The stations of a tuning, in order."""
    study = seen.board.study if seen.board else None
    trials = study.trials if study else ()
    starts = [trial.start_time for trial in trials if trial.start_time]
    ends = [trial.end_time for trial in trials if trial.end_time]
    planned = study.max_trials if study else 0
    over = bool(trials) and len(ends) == len(trials) and (len(ends) == planned or bool(seen.job_ended_at))
    parallel = f"{planned} trials, {seen.parallel_trials} at a time"
    return whole_way(
        seen,
        resource="HyperparameterTuningJob",
        at_work=[
            Hop(title="First trial starts", at=min(starts, default=None), detail=parallel),
            Hop(title=LAST_TRIAL_ENDS, at=max(ends) if over else None, detail=counts(trials)),
        ],
    )


def picture(seen: Sighting, console: Console) -> RenderableType:
    """The whole way, and below it as many trials as the terminal has lines for."""
    stations = hops(seen)
    way = way_panel(stations, seen.dropped_at)
    left = _left_below(way, console)
    if left < LEAST_LINES:
        way = way_panel(stations, seen.dropped_at, one_line_each=True)
        left = max(LEAST_LINES, _left_below(way, console))
    if seen.board is None:
        return Group(way, Panel(Text("waiting for the job", style="dim"), title="Trials", title_align="left"))
    trials = seen.board.table(width=console.size.width - FRAME_COLUMNS, height=left)
    return Group(way, Panel(trials, title=Text(seen.board.title), title_align="left"))


def _left_below(way: Panel, console: Console) -> int:
    """Lines for the table of trials: what the way, a frame and the cursor leave."""
    return console.size.height - len(console.render_lines(way)) - FRAME_LINES - 1


def news(seen: Sighting) -> Iterator[Line]:
    """Each hop once it was passed; each trial's start and end, before the hops that follow them."""
    way = hops(seen)
    after = next(place for place, hop in enumerate(way) if hop.title == LAST_TRIAL_ENDS)
    yield from hop_news(way[:after], seen.dropped_at)
    if seen.board is not None:
        yield from ((key, f"{'':>9}  {line}") for key, line in seen.board.news())
    yield from hop_news(way[after:], seen.dropped_at)


run = Demo(
    request=ROOT / "examples" / "demo_tuning.yaml",
    data=("--dataset=horses_or_humans", "--examples=240"),
    picture=picture,
    news=news,
    report=report,
).run
