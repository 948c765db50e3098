"""`make demo-tuning`: one request becomes six trials, two at a time, and the best one's model."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from trainmaster.cli.demo.stage import Demo
from trainmaster.cli.demo.tuning.report import report
from trainmaster.cli.demo.tuning.watch import LAST_TRIAL_ENDS, TuningSighting, TuningWatch, hops
from trainmaster.cli.demo.view import News, View, hop_news, way_panel
from trainmaster.resources import ROOT

LEAST_LINES = 5
FRAME_LINES, FRAME_COLUMNS = 2, 4


def picture(seen: TuningSighting, console: Console) -> RenderableType:
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


def news(seen: TuningSighting) -> Iterator[News]:
    """Each hop once it was passed; each trial's start and end, before the hops that follow them."""
    way = hops(seen)
    after = next(place for place, hop in enumerate(way) if hop.title == LAST_TRIAL_ENDS)
    yield from hop_news(way[:after], seen.dropped_at)
    if seen.board is not None:
        yield from ((key, f"{'':>9}  {line}") for key, line in seen.board.news())
    yield from hop_news(way[after:], seen.dropped_at)


def view(console: Console) -> View[TuningSighting]:
    return View(console, picture=picture, news=news)


run = Demo(
    request=ROOT / "examples" / "demo_tuning.yaml",
    dataset="horses_or_humans",
    watch=TuningWatch,
    view=view,
    report=report,
).run
