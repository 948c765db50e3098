"""Colours and strokes of a study's figure.

Results are coloured by viridis, which keeps its order for colour-blind readers and in grey; better
is darker, and the palest tenth is left out because it vanishes on white. The best trial has the
vermilion of Okabe and Ito's palette, which viridis does not contain, and a thicker stroke.
Sources: https://bids.github.io/colormap/ and https://jfly.uni-koeln.de/color/
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib import colormaps
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patheffects import Normal, withStroke

from trainmaster.client.study.study import Study, Trial
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.job import TrialState

INK, FAINT, GRID, PAPER = "#1b1f24", "#5b6470", "#dfe3e8", "#ffffff"
BEST, GREY = "#d55e00", "#8a929c"
PALEST = 0.9
FEW = 12
"""Up to this number of trials, each has room for a label and marks."""
LOG_FROM_RATIO = 1000.0


def spans_decades(values: Sequence[float]) -> bool:
    """Whether a metric with these values is drawn on a log scale: all above 0, the ends more than LOG_FROM_RATIO apart."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > LOG_FROM_RATIO


@dataclass(frozen=True, kw_only=True)
class Ink:
    """The strokes of one study's trials: the better, the darker, and the later drawn."""

    study: Study
    norm: Normalize  # from a result to 0 at the lowest, 1 at the highest

    def stroke(self, trial: Trial) -> dict[str, Any]:  # Any: keywords of matplotlib's `plot`
        """How one trial is drawn; widths in points."""
        many = len(self.study.trials) > FEW
        grey = {"color": GREY, "linewidth": 1.0, "alpha": 0.8, "zorder": 2.0}
        if trial is self.study.best:
            halo = [withStroke(linewidth=5.3, foreground=PAPER), Normal()]
            return {"color": BEST, "linewidth": 2.8, "zorder": 4.0, "path_effects": halo}
        if trial.state is TrialState.INFEASIBLE:
            return {**grey, "linestyle": "--"}
        if trial.result is None:
            return grey
        return {
            "color": self.colour_of(trial.result),
            "linewidth": 1.2 if many else 1.8,
            "alpha": 0.75 if many else 1.0,
            "zorder": 2.5 + self._goodness(trial.result),
        }

    def colour_of(self, result: float) -> Any:
        """The colour of a result, as RGBA."""
        return colormaps["viridis"]((1 - self._goodness(result)) * PALEST)

    def _goodness(self, result: float) -> float:
        """From 0, the worst result, to 1, the best."""
        place = float(self.norm(result))
        return place if self.study.goal is Goal.MAXIMIZE else 1 - place


def ink_of(study: Study) -> Ink:
    """The ink for the results that the study has now."""
    results = [trial.result for trial in study.trials if trial.result is not None]
    norm = LogNorm if spans_decades(results) else Normalize
    return Ink(study=study, norm=norm(min(results, default=0.0), max(results, default=1.0)))
