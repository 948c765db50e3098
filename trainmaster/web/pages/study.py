"""A run's study: its trials, what they measured, and which parameters matter."""

import shlex
from urllib.parse import quote

from trainmaster.client.find import read_run
from trainmaster.client.study.document import study_csv, study_document
from trainmaster.client.study.read import TuningStudy, tuning_of
from trainmaster.web.pages.run.asked_run import explanation_of
from trainmaster.web.source import AnswerAge
from trainmaster.web.study.view import columns, study_values
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, File, FileRoute, PageRoute

ROWS, ROWS_MAX = 100, 1000
"""Trials in the table: at first, and at most."""


def _tuning(ask: Ask) -> TuningStudy:
    run_id = ask.path["run_id"]
    return ask.source.read(
        ("study", run_id), AnswerAge.LIVE, lambda clients: tuning_of(clients, read_run(clients, run_id))
    )


def study(ask: Ask) -> ConsolePage:
    """The study as it is now."""
    tuning, run_id = _tuning(ask), ask.path["run_id"]
    sort, descending = ask.query.get("sort") or "trial", ask.query.get("order") == "desc"
    rows = ask.whole("rows", ROWS, ROWS_MAX)
    view = study_values(tuning, sort=sort, descending=descending, most=rows)
    here, quoted = f"/runs/{quote(run_id, safe='')}", shlex.quote(run_id)
    hidden = len(tuning.study.trials) > rows < ROWS_MAX
    return ConsolePage(
        title=f"Study of {run_id}",
        template="study.html",
        values={
            "view": view,
            "why": explanation_of(ask, tuning.run) if tuning.run and tuning.run.record.ended else None,
            "run_path": here,
            "csv_path": f"{here}/study.csv",
            "train": f"trainmaster study {quoted} --request | trainmaster submit -",
            "links": _links(ask, tuning, sort, descending=descending),
            "more": ask.address(f"{here}/study", rows=str(ROWS_MAX)) if hidden else "",
        },
        command=f"trainmaster study {quoted}",
        is_final=tuning.has_ended,
    )


def _links(ask: Ask, tuning: TuningStudy, sort: str, *, descending: bool) -> dict[str, str]:
    """By column, the address of the page that is sorted by it; of the one that it is sorted by, in the other order."""
    path = f"/runs/{quote(ask.path['run_id'], safe='')}/study"
    return {
        column.key: ask.address(
            path, sort=column.key, order="asc" if column.key != sort or descending else "desc"
        )
        for column in columns(tuning.study)
    }


def table(ask: Ask) -> File:
    """All trials as CSV."""
    content = study_csv(_tuning(ask).study).encode()
    return File(name=f"{ask.path['run_id']}-study.csv", media_type="text/csv", content=content)


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/runs/{run_id}/study", show=study)],
    files=[FileRoute(path="/runs/{run_id}/study.csv", make=table)],
    api=[
        ApiRoute(
            path="/runs/{run_id}/study",
            summary="A tuning's trials, parameters and results.",
            read=lambda ask: study_document(_tuning(ask)),
            schema="study.v1",
        )
    ],
)
