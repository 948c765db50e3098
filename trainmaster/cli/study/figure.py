"""A study as one figure: learning curves above, parallel coordinates below; as PNG and as SVG."""

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from trainmaster.cli.study.curves import draw_curves
from trainmaster.cli.study.ink import FAINT, GRID, INK, PAPER, ink_of
from trainmaster.cli.study.parallel import draw_parallel
from trainmaster.client.study.study import Study, counts, number, plural
from trainmaster.client.terminal import one_line

WIDTH_IN, HEIGHT_IN = 12.0, 9.6
AXIS_WIDTH_IN = 1.55
"""With many parameters the figure grows wider, so that the labels of neighbouring axes never touch."""
DOTS_PER_IN = 144
TITLE_CHARS = 80

_STYLE: dict[Any, Any] = {  # Any: the library's type is the list of all its settings
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 11,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 13,
    "grid.color": GRID,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "figure.facecolor": PAPER,
    "svg.fonttype": "none",  # text stays text: it can be read aloud, selected and found
    "svg.hashsalt": "study",  # the same study gives the same bytes
    "svg.id": "study",
}


def png_of(study: Study) -> bytes:
    """The figure as PNG, DOTS_PER_IN dots an inch."""
    return _saved(study, "png", dpi=DOTS_PER_IN)


def svg_of(study: Study) -> str:
    """The figure as one `<svg>` element that refers to nothing outside itself."""
    document = _saved(study, "svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))).decode()
    element = document[document.index("<svg") :]
    return re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", element, count=1)


def study_figure(study: Study) -> Figure:
    """The figure itself; only `study` decides what is on it."""
    width = max(WIDTH_IN, AXIS_WIDTH_IN * (len(study.parameters) + 2))
    ink = ink_of(study)
    with _styled():
        figure = Figure(figsize=(width, HEIGHT_IN), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.25, h_pad=0.15, hspace=0.06)  # type: ignore[union-attr, call-arg]  # the engine asked for above
        figure.suptitle(
            f"{one_line(study.title, TITLE_CHARS)}\n{summary(study)}", x=0.5, fontsize=14, color=INK
        )
        above, below = figure.subplots(2, 1, height_ratios=(1, 1.15))
        draw_curves(above, study, ink)
        draw_parallel(below, study, ink)
    return figure


def summary(study: Study) -> str:
    """For example `6 trials: 5 succeeded, 1 infeasible. Best: trial 4, accuracy 0.93`."""
    said = f"{plural(len(study.trials), 'trial')}: {counts(study.trials)}."
    best = study.best
    if best is None or best.result is None:
        return f"{said} None has a result."
    metric = one_line(study.metric, 40)
    return f"{said} Best: trial {one_line(best.id)}, {metric} {number(best.result)}"


def _saved(study: Study, kind: str, **options: Any) -> bytes:
    content = io.BytesIO()
    figure = study_figure(study)
    with _styled():
        figure.savefig(content, format=kind, **options)
    return content.getvalue()


@contextmanager
def _styled() -> Iterator[None]:
    with rc_context(_STYLE), warnings.catch_warnings():
        # A name in a script that the font lacks shows as boxes in the PNG; the SVG and the table have it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
