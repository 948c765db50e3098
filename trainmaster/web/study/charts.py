"""The charts of a study, as static/charts.js reads them."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from trainmaster.client.study.importance import Importance
from trainmaster.client.study.study import Interval, Parameter, Scale, Study, StudyTrial, Value
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.runs.job import TrialState

CURVES_MAX, CURVE_POINTS_MAX, POINTS_MAX = 200, 500, 20_000
"""Curves in one chart, points of one curve, and of all curves."""
LINES_MAX, AXES_MAX = 1000, 40
NAME_CHARS = 60
DECADES = 100
"""Values of which the largest is that many times the smallest are drawn on a logarithmic scale."""

_Chart = dict[str, Any]
_Point = TypeVar("_Point")


def curves_chart(study: Study) -> _Chart:
    """The metric after each step, a line for each trial that has measured it; the best and the running ones come first."""
    measured = [trial for trial in by_interest(study) if trial.measurements][:CURVES_MAX]
    most = max(2, min(CURVE_POINTS_MAX, POINTS_MAX // max(1, len(measured))))
    values = [measurement.value for trial in measured for measurement in trial.measurements]
    strokes = _strokes(study)
    series = [
        {
            "name": trial_name(trial),
            "points": thinned(sorted((each.step, each.value) for each in trial.measurements), most),
            **strokes[trial.id],
        }
        for trial in measured
    ]
    scale = {"yScale": "log"} if spans_decades(values) else {}
    return {"x": "step", "y": f"{_name(study.metric)} ({study.goal.value})", "series": series, **scale}


def parallel_chart(study: Study) -> _Chart:
    """An axis for each parameter and one for the result, and a line for each trial, the best one last and so on top."""
    parameters = study.parameters[:AXES_MAX]
    strokes = _strokes(study)
    lines = [
        {
            "name": trial_name(trial),
            "values": [
                *(_value_on_axis(axis, trial.parameters.get(axis.name)) for axis in parameters),
                trial.result,
            ],
            **strokes[trial.id],
        }
        for trial in reversed(by_interest(study)[:LINES_MAX])
    ]
    return {
        "axes": [*map(_axis, parameters), _axis(_result_axis(study))],
        "lines": lines if parameters else [],
    }


def importance_chart(found: Sequence[Importance]) -> _Chart:
    """A bar for each parameter whose importance is known."""
    items = [(_name(each.name), round(each.value, 3)) for each in found if each.value is not None]
    return {"value": "importance", "max": 1, "items": items[:AXES_MAX]}


def by_interest(study: Study) -> list[StudyTrial]:
    """Every trial: running ones first, then the best."""
    running = [trial for trial in study.trials if not trial.state.ended]
    rest = [trial for trial in study.trials if trial.state.ended and trial.result is None]
    best = study.trials_by_rank()
    return [*best[:1], *running, *best[1:], *rest]


def thinned(points: Sequence[_Point], most: int) -> Sequence[_Point]:
    """At most `most` of the points, at least two, among them the first and the last."""
    if len(points) <= most:
        return points
    return [points[place * (len(points) - 1) // (most - 1)] for place in range(most)]


def spans_decades(values: Sequence[float]) -> bool:
    """Whether a linear scale would show most of the values as one."""
    return bool(values) and min(values) > 0 and max(values) >= DECADES * min(values)


def trial_name(trial: StudyTrial) -> str:
    """What a trial is called in the charts."""
    return f"trial {one_line(trial.id, 20)}"


def _strokes(study: Study) -> Mapping[str, _Chart]:
    """By trial id: darker for better, by its place among all results; dashed for an infeasible trial."""
    ranked = study.trials_by_rank()
    last = max(1, len(ranked) - 1)
    strokes: dict[str, _Chart] = {trial.id: {"tone": None} for trial in study.trials}
    strokes |= {trial.id: {"tone": round(1 - place / last, 3)} for place, trial in enumerate(ranked)}
    for trial in study.trials:
        if trial.state is TrialState.INFEASIBLE:
            strokes[trial.id]["dash"] = True
    if ranked:
        strokes[ranked[0].id]["best"] = True
    return strokes


def _result_axis(study: Study) -> Interval:
    results = [trial.result for trial in study.trials if trial.result is not None] or [0.0, 1.0]
    scale = Scale.LOG if spans_decades(results) else Scale.LINEAR
    return Interval(name=study.metric, low=min(results), high=max(results), scale=scale)


def _axis(parameter: Parameter) -> _Chart:
    if not isinstance(parameter, Interval):
        return {"name": _name(parameter.name), "values": [_word(value) for value in parameter.values]}
    scale = parameter.scale if parameter.low > 0 else Scale.LINEAR
    return {"name": _name(parameter.name), "scale": scale.value, "low": parameter.low, "high": parameter.high}


def _value_on_axis(parameter: Parameter, value: Value | None) -> Value | None:
    """The value where it is on the axis; one beyond its ends is drawn at the end."""
    if value is None or not isinstance(parameter, Interval):
        return None if value is None else _word(value)
    return None if isinstance(value, str) else min(max(value, parameter.low), parameter.high)


def _word(value: Value) -> Value:
    return _name(value) if isinstance(value, str) else value


def _name(text: str) -> str:
    return one_line(text, NAME_CHARS)
