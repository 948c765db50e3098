"""Colours and strokes of a study's figure.

Results are coloured by viridis, which keeps its order for colour-blind readers and in grey; better
is darker, and the palest tenth is left out because it vanishes on white. The best trial has the
vermilion of Okabe and Ito's palette, which viridis does not contain, and a thicker stroke.
Sources: https://bids.github.io/colormap/ and https://jfly.uni-koeln.de/color/
"""

from dataclasses import dataclass
from typing import Any

from matplotlib import colormaps

from trainmaster.cli.study.axis import NumberAxis
from trainmaster.cli.study.study import Goal, Study, Trial, TrialState

INK, FAINT, GRID, PAPER = "#1b1f24", "#5b6470", "#dfe3e8", "#ffffff"
BEST, GREY = "#d55e00", "#8a929c"
PALEST = 0.9
FEW = 12
"""Up to so many trials each has room for a label and for marks."""


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """How one trial is drawn; widths in points."""

    colour: Any  # matplotlib takes names and RGBA tuples
    width: float
    dashes: str = "-"
    alpha: float = 1.0
    layer: float = 2.0


@dataclass(frozen=True, kw_only=True)
class Ink:
    """The strokes of one study's trials: the better, the darker, and the later drawn."""

    study: Study
    scale: NumberAxis

    def stroke(self, trial: Trial) -> Stroke:
        if trial is self.study.best:
            return Stroke(colour=BEST, width=2.8, layer=4)
        many = len(self.study.trials) > FEW
        if trial.state is TrialState.INFEASIBLE:
            return Stroke(colour=GREY, width=1.0, dashes="--", alpha=0.8, layer=2)
        if trial.result is None:
            return Stroke(colour=GREY, width=1.0, alpha=0.8, layer=2)
        position = self.scale.position(trial.result) or 0.0
        return Stroke(
            colour=self.colour_at(position),
            width=1.2 if many else 1.8,
            alpha=0.75 if many else 1.0,
            layer=2.5 + self._goodness(position),
        )

    def colour_at(self, position: float) -> Any:
        """The colour of a result at `position` of the metric's scale, from 0 to 1."""
        return colormaps["viridis"]((1 - self._goodness(position)) * PALEST)

    def _goodness(self, position: float) -> float:
        return position if self.study.goal is Goal.MAXIMIZE else 1 - position
