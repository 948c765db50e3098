"""The values of a study's page, apart from its charts, for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from trainmaster.client.shown.run_lines import trial_reason
from trainmaster.client.study.importance import importances
from trainmaster.client.study.read import TuningStudy
from trainmaster.client.study.study import Study, StudyTrial, Value, counts, number, shown
from trainmaster.client.terminal import one_line, plural
from trainmaster.orchestrator.core.completion.explanation import without_log_link
from trainmaster.web.faults import WrongQuery
from trainmaster.web.study.charts import (
    AXES_MAX,
    CURVES_MAX,
    LINES_MAX,
    NAME_CHARS,
    curves_chart,
    importance_chart,
    parallel_chart,
    trial_name,
)

CELL_CHARS = 200
_PARAMETER = "parameter:"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of the table of trials. `key` is its name in the query."""

    key: str
    heading: str
    is_number: bool = False


def study_values(tuning: TuningStudy, *, sort: str, descending: bool, most: int) -> dict[str, Any]:
    """The values of the template study_parts.html. At most `most` trials are in the table.

    Raises:
        WrongQuery: there is no column `sort`.
    """
    study, best, found = tuning.study, tuning.study.best, importances(tuning.study)
    reasons = _recorded_reasons(tuning)
    return {
        "title": one_line(study.title, CELL_CHARS),
        "job": one_line(study.name, CELL_CHARS),
        "state": tuning.state.removeprefix("JOB_STATE_").lower(),
        "metric": one_line(study.metric, NAME_CHARS),
        "goal": study.goal.value,
        "trials": len(study.trials),
        "ended": sum(each.state.ended for each in study.trials),
        "has_ended": tuning.has_ended,
        "max_trials": study.max_trials,
        "counts": counts(study.trials),
        "best": None if best is None else _row(study, best, reasons),
        "best_parameters": [] if best is None else _assignments(best),
        "model_uri": tuning.model_uri,
        "importances": [
            {"name": one_line(each.name, NAME_CHARS), "value": each.value, "reason": each.reason}
            for each in found
        ],
        "columns": columns(study),
        "rows": [
            _row(study, trial, reasons) for trial in sorted_trials(study, sort, descending=descending)[:most]
        ],
        "sort": sort,
        "descending": descending,
        "curves": curves_chart(study),
        "parallel": parallel_chart(study),
        "importance": importance_chart(found),
        "left_out": list(_left_out(study)),
    }


def _left_out(study: Study) -> Sequence[str]:
    """What the charts have no room for."""
    measured = sum(bool(trial.measurements) for trial in study.trials)
    found = (
        ("curve", measured - CURVES_MAX),
        ("line", len(study.trials) - LINES_MAX),
        ("parameter", len(study.parameters) - AXES_MAX),
    )
    return [plural(more, thing) for thing, more in found if more > 0]


def columns(study: Study) -> list[Column]:
    """Those of the table, in order."""
    return [
        Column(key="trial", heading="Trial"),
        Column(key="state", heading="State"),
        *(
            Column(key=f"{_PARAMETER}{axis.name}", heading=one_line(axis.name, NAME_CHARS), is_number=True)
            for axis in study.parameters[:AXES_MAX]
        ),
        Column(key="result", heading=one_line(study.metric, NAME_CHARS), is_number=True),
        Column(key="best", heading="Best measured", is_number=True),
        Column(key="steps", heading="Steps", is_number=True),
        Column(key="started", heading="Started"),
        Column(key="took", heading="Took"),
    ]


def sorted_trials(study: Study, sort: str, *, descending: bool) -> list[StudyTrial]:
    """All trials by one column; those without a value last, equal ones in the order of the study.

    Raises:
        WrongQuery: there is no such column.
    """
    keys = [column.key for column in columns(study)]
    if sort not in keys:
        raise WrongQuery(f"sort: expected {', '.join(keys[:10])}, found {one_line(sort, NAME_CHARS)!r}")
    if sort == "trial":
        return list(study.trials)[:: -1 if descending else 1]
    keyed = [(_key(study, trial, sort), trial) for trial in study.trials]
    known = sorted(((key, each) for key, each in keyed if key), key=lambda pair: pair[0], reverse=descending)
    return [*(trial for _, trial in known), *(trial for key, trial in keyed if key is None)]


def _key(study: Study, trial: StudyTrial, sort: str) -> tuple[int, float, str] | None:
    """Numbers before words."""
    if sort.startswith(_PARAMETER):
        value = trial.parameters.get(sort.removeprefix(_PARAMETER))
    else:
        took, start = _took(trial), trial.start_time
        values: dict[str, Value | None] = {
            "state": trial.word,
            "result": trial.result,
            "best": study.best_measured(trial),
            "steps": float(trial.measurements[-1].step) if trial.measurements else None,
            "started": None if start is None else start.timestamp(),
            "took": None if took is None else took.total_seconds(),
        }
        value = values[sort]
    if value is None:
        return None
    return (1, 0.0, value) if isinstance(value, str) else (0, value, "")


def _recorded_reasons(tuning: TuningStudy) -> Mapping[str, str]:
    """By trial id, the words of `trainmaster study`: errors of programs, which only the run's record has."""
    recorded = tuning.run.record.tuning if tuning.run else None
    return {trial.id: trial_reason(trial) for trial in recorded.trials if trial.failure} if recorded else {}


def _row(study: Study, trial: StudyTrial, reasons: Mapping[str, str]) -> dict[str, Any]:
    """A trial. `cells` are those of its parameters."""
    measured = study.best_measured(trial)
    return {
        "name": trial_name(trial),
        "id": one_line(trial.id, 20),
        "state": trial.word,
        "is_best": trial is study.best,
        "cells": [
            one_line(shown(trial.parameters.get(parameter.name)), CELL_CHARS)
            for parameter in study.parameters[:AXES_MAX]
        ],
        "result": "" if trial.result is None else number(trial.result),
        "best_measured": "" if measured is None else number(measured),
        "steps": str(trial.measurements[-1].step) if trial.measurements else "",
        "started": trial.start_time,
        "took": _took(trial),
        "reason": one_line(reasons.get(trial.id) or without_log_link(trial.infeasible_reason), CELL_CHARS),
    }


def _took(trial: StudyTrial) -> timedelta | None:
    return None if trial.start_time is None or trial.end_time is None else trial.end_time - trial.start_time


def _assignments(trial: StudyTrial) -> list[tuple[str, str]]:
    return [
        (one_line(name, NAME_CHARS), one_line(shown(value), CELL_CHARS))
        for name, value in trial.parameters.items()
    ]
