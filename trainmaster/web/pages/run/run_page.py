"""The page of a run, or of a file or message without one, and the same as documents."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from trainmaster.client.files.listing import model_files, model_listing
from trainmaster.client.find import Drop, Run
from trainmaster.client.runs.facts import is_tuning, lacks_model
from trainmaster.client.shown.queue_lines import place_text
from trainmaster.client.shown.run_lines import by_text
from trainmaster.client.shown.run_screen import next_commands, subject_facts
from trainmaster.client.terminal import visible
from trainmaster.client.watch.curves import Chart
from trainmaster.client.watch.now import run_now, with_progress
from trainmaster.client.watch.timeline import timeline
from trainmaster.orchestrator.core.admission.retries import followed_texts
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.web.pages.file_table import FileTable, file_table
from trainmaster.web.pages.run.actions import ACTIONS
from trainmaster.web.pages.run.asked_run import explanation_of, found_of, run_of, seen_of
from trainmaster.web.pages.run.drawings import chart_views, lane_table, stage_rows, steady_time
from trainmaster.web.pages.run.event_files import EventFiles
from trainmaster.web.pages.run.log import LIMIT_MAX, log_document, log_view
from trainmaster.web.pages.run.monitor import Monitored
from trainmaster.web.pages.run.request import request_view
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute, QueryParameter

TRIES_SHOWN, PROBLEMS_SHOWN = 20, 50


def run(ask: Ask) -> ConsolePage:
    """The page of what the path names."""
    found = seen_of(ask)
    return _drop_page(ask, found) if isinstance(found, Drop) else _run_page(ask, found)


def _run_page(ask: Ask, found: Monitored) -> ConsolePage:
    record, shown = found.run.record, with_progress(found.run, found.seen.training)
    why = explanation_of(ask, found.run)
    path = f"/runs/{record.run_id}"
    stages = timeline(found.seen)
    began = next((stage.at for stage in stages if stage.at), ask.now)
    now = None if record.ended else steady_time(began, ask.now)
    values = {
        "record": record,
        "path": path,
        "why": why,
        "by": by_text(record),
        "place": place_text(why.place) if why.place else "",
        "facts": list(subject_facts(shown.record, ask.now, is_local=ask.source.is_local)),
        "labels": _labels(record),
        "lacks_model": lacks_model(record),
        "stages": stage_rows(stages, now),
        "lanes": lane_table(found, now),
        "charts": chart_views([*found.charts, *_charts_of_files(ask, record)]),
        "is_partial": found.is_partial,
        "service_line": found.seen.service_line,
        "log": log_view(ask, found, path),
        "request": request_view(ask, found.run),
        "tries": record.submission.tries[-TRIES_SHOWN:][::-1],
        "tries_left_out": max(0, len(record.submission.tries) - TRIES_SHOWN),
        "abandoned": [*zip(record.submission.abandoned_jobs, followed_texts(record), strict=True)][
            -TRIES_SHOWN:
        ][::-1],
        "files": _files(ask, found.run),
        "problems": _problems(record),
        "commands": list(next_commands(record)),
        "can_repeat": record.request is not None,
        "is_tuning": found.seen.study is not None or is_tuning(record),
    }
    return ConsolePage(
        title=record.run_id,
        template="run/run.html",
        values=values,
        command=shlex.join(["trainmaster", "watch", record.run_id]),
        is_final=found.is_over,
    )


def _charts_of_files(ask: Ask, record: RunRecord) -> Sequence[Chart]:
    """Those of the run's TensorBoard files, which are read again once it has ended."""
    if record.request is None or record.job is None or is_tuning(record):
        return ()
    uri = f"{record.request.output_uri}/logs/"
    return ask.source.follow(
        ("event files", record.run_id, record.ended),
        AnswerAge.SLOW,
        lambda clients: EventFiles(clients, uri),
        EventFiles.look,
    )


def _drop_page(ask: Ask, drop: Drop) -> ConsolePage:
    name = str(drop.status.get("dropped_name") or ask.path["run_id"])
    return ConsolePage(
        title=visible(name),
        template="run/drop.html",
        values={"status": drop.status, "faults": drop.status.get("faults") or ()},
        command=shlex.join(["trainmaster", "status", name]),
    )


def _labels(record: RunRecord) -> Mapping[str, str]:
    labels = record.request.document.get("labels") if record.request else None
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {}


def _problems(record: RunRecord) -> Sequence[str]:
    """Those that are not the faults of a rejected request, nor in the table of the tries."""
    faults = record.rejection.faults if record.rejection and record.rejection.faults else ()
    known = followed_texts(record)
    return [problem for problem in record.problems[len(faults) :] if problem not in known][:PROBLEMS_SHOWN]


def _files(ask: Ask, found: Run) -> FileTable | None:
    """The files of the run's model; None while it has none."""
    if found.record.model is None:
        return None
    key = ("files", found.record.run_id, found.record.model.uri)
    return ask.source.read(
        key, AnswerAge.RARE, lambda clients: file_table(lambda: model_files(clients, found))
    )


def document(ask: Ask) -> dict[str, Any]:
    """schemas/run_record.v2.schema.json; of a file or message without a run its status."""
    found = found_of(ask)
    if isinstance(found, Drop):
        return found.status
    key = ("now", found.record.run_id, found.record.updated_at)
    return ask.source.read(key, AnswerAge.LIVE, lambda clients: run_now(clients, found, ask.now).document)


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/runs/{run_id}", show=run), PageRoute(path="/drops/{run_id:path}", show=run)],
    api=[
        ApiRoute(
            path="/runs/{run_id}",
            summary="The record of a run, by its id, file or message.",
            read=document,
            schema="run_record.v2",
        ),
        ApiRoute(
            path="/runs/{run_id}/explanation",
            summary="Every step that led to a run, as `trainmaster why` prints it.",
            read=lambda ask: explanation_of(ask, run_of(ask)).document,
            schema="explanation.v1",
        ),
        ApiRoute(
            path="/runs/{run_id}/log",
            summary="The end of a run's log, or a page before it, as documents of log_line.v1; `earlier` continues it.",
            read=log_document,
            parameters=[
                QueryParameter(
                    name="limit", description=f"the most lines, up to {LIMIT_MAX}", is_number=True
                ),
                QueryParameter(name="before", description="`earlier` of a page: the lines before it"),
                QueryParameter(
                    name="replica", description="workerpool0-0, or 3/workerpool0-0 of the trial 3"
                ),
                QueryParameter(name="q", description="only lines with this text, regardless of case"),
            ],
        ),
        ApiRoute(
            path="/runs/{run_id}/files",
            summary="The files of a run's model, with sizes, generations and checksums.",
            read=lambda ask: model_listing(ask.source.clients, run_of(ask)),
            schema="model_files.v1",
        ),
    ],
    actions=ACTIONS,
)
