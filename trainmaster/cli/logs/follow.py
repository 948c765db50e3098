"""Prints the log of a run as it grows, until the run has ended."""

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import timedelta

import click
from rich.console import Console

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.logs.lanes import LogPrinter
from trainmaster.cli.runs.following import in_words, run_survives_interrupt, say_end
from trainmaster.cli.verb import JSON, talk
from trainmaster.client.clients import Clients
from trainmaster.client.errors import TimedOut
from trainmaster.client.find import Run
from trainmaster.client.logs.follow import RunLog, find_run_to_follow
from trainmaster.client.logs.line import LogLine
from trainmaster.client.logs.read import LINES_MAX, Selection
from trainmaster.client.logs.survive import look_until, survive_restarts
from trainmaster.client.terminal import one_line
from trainmaster.client.wait import wait_until_settled
from trainmaster.orchestrator.core.documents.codec import encoded_time

REASON_MAX_CHARS = 300


def follow(
    clients: Clients,
    run_id: str,
    *,
    selection: Selection | None = None,
    limit: int = LINES_MAX,
    output: str = "text",
    timeout_s: float | None = None,
    requires_model: bool = False,
) -> ExitStatus:
    """Print the log of the run until it has ended: 0 if it succeeded, else 1. Waits for its job where it has none yet.

    Args:
        clients: of the context that has the run.
        run_id: of a run that is on record.
        selection: which lines; all without it.
        limit: how many of the lines that exist already are printed, the last ones.
        output: `text` or `json`.
        timeout_s: in seconds; None follows as long as it takes.
        requires_model: a run that succeeds without a model ends with 1, too.

    Raises:
        NotFound: there is no such run.
        TimedOut: it has not ended in time.
        NoStack, google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: the services are
            gone, or do not answer for longer than a restart takes.
    """
    console = Console(highlight=False)
    lanes = LogPrinter(console)
    log = RunLog(clients, find_run_to_follow(clients, run_id), selection)
    as_json = output == JSON
    with run_survives_interrupt(run_id):
        with nullcontext() if as_json else lanes.following(waits_for(log.run)):
            _follow(clients, log, lanes, limit=limit, as_json=as_json, timeout_s=timeout_s)
        lanes.finish()
        return say_end(wait_until_settled(clients, log.run), requires_model=requires_model)


def _follow(
    clients: Clients, log: RunLog, lanes: LogPrinter, *, limit: int, as_json: bool, timeout_s: float | None
) -> None:
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    said = ""
    if log.job_ids:
        lines, left_out = survive_restarts(clients.context, lambda: log.last(limit), deadline=deadline)
        if left_out:
            talk(left_out_hint(lines, limit))
        show_lines(lines, lanes, as_json=as_json)
    for lines in look_until(lambda: log.is_over, clients.context, log.look):
        if (now := waits_for(log.run)) != said and not log.job_ids and not log.run.record.ended:
            said = now
            talk(now)
        lanes.say(now)
        show_lines(lines, lanes, as_json=as_json)
        if deadline is not None and time.monotonic() > deadline and not log.is_over:
            run_id = log.run.record.run_id
            raise TimedOut(f"{now} after {timeout_s:g} s. Follow it again: trainmaster logs {run_id} -f")


def left_out_hint(lines: Sequence[LogLine], limit: int) -> str:
    """How to see more than the last `limit` lines, of which `lines` are the oldest that were read; oldest first."""
    first, last = lines[0].at, lines[-1].at
    # A line that was left out may have the time of the first one, of which the client drops the nanoseconds: the first
    # one is repeated, unless that would repeat all.
    before = first + timedelta(microseconds=1 if last > first else -1)
    more = f" To see more than {limit}: --limit {min(10 * limit, LINES_MAX)}." if limit < LINES_MAX else ""
    return f"Earlier lines are left out.{more} To see those before: --before {encoded_time(before)}"


def show_lines(lines: list[LogLine], lanes: LogPrinter, *, as_json: bool) -> None:
    """Print the lines, with `as_json` each as a document."""
    if not as_json:
        lanes.show(lines)
        return
    for line in lines:
        click.echo(json.dumps(line.document, ensure_ascii=False))


def waits_for(run: Run) -> str:
    """What the run is doing, and if it has no job, why."""
    record = run.record
    waiting = record.admission.waiting
    if record.job is not None:
        return f"{record.run_id} {in_words(record.state)}" if record.ended else f"following {record.run_id}"
    if record.ended:
        why = record.failure.message if record.failure else next(iter(record.problems), "")
        return f"{record.run_id} {in_words(record.state)} and had no job" + (
            f": {one_line(why, REASON_MAX_CHARS)}" if why else ""
        )
    why = waiting.reason if waiting else "its job is being submitted"
    return f"{record.run_id} is {record.state} and has no job yet: {one_line(why, REASON_MAX_CHARS)}"
