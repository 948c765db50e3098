"""A study as a JSON document, and as CSV."""

import csv
import io
from collections.abc import Iterator
from typing import Any

from trainmaster.client.study.importance import importances
from trainmaster.client.study.read import TuningStudy
from trainmaster.client.study.study import Choices, Parameter, Study, StudyTrial, Value
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.documents.codec import encoded

STUDY_SCHEMA = "study.v1"
_FORMULA = tuple("=+-@＝＋－＠")


def study_document(tuning: TuningStudy) -> dict[str, Any]:
    """schemas/study.v1.schema.json."""
    study, run = tuning.study, tuning.run
    best_trial: dict[str, Any] = {}
    if (best := study.best) is not None:
        best_trial = {"id": best.id, "value": best.result, "parameters": dict(best.parameters)}
        best_trial |= {} if tuning.model_uri is None else {"model_uri": tuning.model_uri}
    return {
        "schema": STUDY_SCHEMA,
        **({} if run is None else {"run_id": run.record.run_id}),
        "job": study.name,
        "title": study.title,
        "state": tuning.state,
        "metric": study.metric,
        "goal": study.goal.value,
        "max_trials": study.max_trials,
        "parameters": [_parameter(parameter) for parameter in study.parameters],
        "trials": [_trial(study, trial) for trial in study.trials],
        **({"best_trial": best_trial} if best_trial else {}),
        "importances": [
            {key: value for key, value in vars(importance).items() if value not in (None, "")}
            for importance in importances(study)
        ],
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    kind = "choices" if isinstance(parameter, Choices) else "interval"
    return {"kind": kind, **encoded(parameter)}  # type: ignore[dict-item]  # a dataclass becomes a mapping


def _trial(study: Study, trial: StudyTrial) -> dict[str, Any]:
    found = {
        "id": trial.id,
        "state": trial.state.value,
        "parameters": dict(trial.parameters),
        "measurements": [{"step": each.step, "value": each.value} for each in trial.measurements],
        "result": trial.result,
        "best_measured": study.best_measured(trial),
        "start_time": encoded(trial.start_time),
        "end_time": encoded(trial.end_time),
        "infeasible_reason": trial.infeasible_reason or None,
    }
    return {key: value for key, value in found.items() if value is not None}


def study_csv(study: Study) -> str:
    """One row a trial, below a row of headings, as RFC 4180 defines CSV.

    A spreadsheet executes text that begins like a formula, so that such text gets an apostrophe before it; numbers stay
    as they are. Source: https://owasp.org/www-community/attacks/CSV_Injection (read 2026-11-23).
    """
    out = io.StringIO()
    csv.writer(out).writerows(_rows(study))
    return out.getvalue()


def _rows(study: Study) -> Iterator[list[str]]:
    names = [parameter.name for parameter in study.parameters]
    results = (study.metric, "best measured", "measurements")
    yield [_cell(heading) for heading in ("trial", "state", *names, *results, "started", "ended", "reason")]
    for trial in study.trials:
        found = _trial(study, trial) | {"measurements": len(trial.measurements)}
        given = (trial.parameters.get(name) for name in names)
        columns = ("result", "best_measured", "measurements", "start_time", "end_time", "infeasible_reason")
        values = (found["id"], found["state"], *given, *map(found.get, columns))
        yield [_cell(value) for value in values]


def _cell(value: Value | None) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    line = one_line(value)
    return f"'{line}" if line.lstrip().startswith(_FORMULA) else line
