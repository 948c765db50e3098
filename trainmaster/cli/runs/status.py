"""`trainmaster status`: one run, or a file or message without one."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.table import STATE, Fact, print_facts
from trainmaster.cli.verb import (
    JSON,
    NAME,
    TABLE,
    YAML,
    output_option,
    print_data,
    print_names,
    takes_context,
    talk,
)
from trainmaster.client.runs.facts import in_state_since, is_active_tuning
from trainmaster.client.runs.reports import reported_faults
from trainmaster.client.shown.run_lines import (
    at,
    cost_facts,
    failure_facts,
    fault_facts,
    job_facts,
    result_facts,
    source_text,
    waiting_facts,
)
from trainmaster.client.times import span
from trainmaster.orchestrator.core.documents.placing import rendered
from trainmaster.orchestrator.core.job_names import JobKind, job_kind
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.find import Run
    from trainmaster.client.logs.restarts import Restarts
    from trainmaster.client.rules.outcome import Outcome

NEWEST = 10
"""Runs that are listed where none is named."""
_REPLAY = "trainmaster dead-letters ls"


@click.command()
@click.argument("run", required=False)
@output_option(TABLE, JSON, YAML, NAME)
@takes_context
def status(clients: "Clients", run: str | None, output: str) -> int:
    """Show RUN: its state and why, its job, results, cost and problems, and the next commands.

    Without RUN it lists the newest runs, as `trainmaster ls`.

    RUN is a run's id, the file that started it, or the id or key of a message. JSON is the run's record, or for a file
    or message without a run its status. Of a tuning that has not ended, the screen shows what the training service says
    now; its record follows within a minute.

    Exit status: 0 if the run exists, however it ended (`trainmaster wait` reports the end), 3 if no run matches RUN.
    """
    from trainmaster.client.find import Drop, find_run_or_drop

    if run is None:
        return _newest(clients, output)
    found = find_run_or_drop(clients, run)
    document = found.status if isinstance(found, Drop) else found.document
    if output == NAME:
        print_names([str(document.get("run_id") or document.get("dropped_name") or run)])
    elif output != TABLE:
        print_data(document, output)
    elif isinstance(found, Drop):
        from trainmaster.client.rules.outcome import outcome_of

        print_facts(drop_facts(found.status, run, outcome_of(clients, found.status)))
    else:
        now = datetime.now(UTC)
        found = _now(clients, found, now)
        is_local, restarts = clients.context.state is not None, _restarts_so_far(clients, found.record)
        print_facts(run_facts(found, now, is_local=is_local, restarts=restarts))
    return 0


def _now(clients: "Clients", run: "Run", now: datetime) -> "Run":
    """A tuning that has not ended as the training service has it; any other run as it is on record."""
    if not is_active_tuning(run.record):
        return run
    from trainmaster.client.study.now import tuning_now

    return tuning_now(clients, run, now) or run


def _restarts_so_far(clients: "Clients", record: RunRecord) -> "Restarts | None":
    """Of a run that has not ended. Of others `why` says them: the log's client takes longer to load than all the rest."""
    if record.ended:
        return None
    from trainmaster.client.logs.restarts import restarts_of

    return restarts_of(clients, record)


def _newest(clients: "Clients", output: str) -> int:
    from trainmaster.cli.runs.ls import NO_RUNS, print_runs
    from trainmaster.client.runs.listing import Filters, list_runs

    found = list_runs(clients, Filters(), limit=NEWEST)
    print_runs(found, datetime.now(UTC), output)
    if output == TABLE:
        talk("One of them: trainmaster status RUN. More: trainmaster ls" if found.rows else NO_RUNS)
    return 0


def run_facts(
    run: "Run", now: datetime, *, is_local: bool, restarts: "Restarts | None" = None
) -> Iterator[Fact]:
    """The screen of a run."""
    record = run.record
    yield "run", [record.run_id]
    yield STATE, [state_text(record, now, restarts)]
    if record.cancel_requested_at is not None and not record.ended:
        yield "cancelling", [f"since {at(record.cancel_requested_at)}"]
    yield from _delivery_facts(run)
    yield from waiting_facts(record, now)
    if record.source.team is not None:
        yield "team", [record.source.team]
    yield "model name", [record.model_name or "-"]
    yield "source", [source_text(record.source)]
    yield from job_facts(record, is_local=is_local)
    yield from result_facts(record)
    yield from cost_facts(record, now)
    yield from failure_facts(record)
    yield from fault_facts(record)
    yield "next", list(next_commands(record))


def state_text(record: RunRecord, now: datetime, restarts: "Restarts | None" = None) -> str:
    """The state, since when, its restarts, and of a run that has ended how long it took."""
    entered = in_state_since(record)
    restarted = f"; {restarts.text}" if restarts else ""
    if not record.ended:
        return f"{record.state} for {span(now - entered)}, since {at(entered)}{restarted}"
    took = f", after {span(entered - record.history[0].at)}" if record.job else ""
    return f"{record.state} {span(now - entered)} ago, at {at(entered)}{took}{restarted}"


def _delivery_facts(run: "Run") -> Iterator[Fact]:
    """Deliveries of the run's event that failed since the run last made progress."""
    if run.status is not None and run.status.get("failed_deliveries"):
        yield "event", [str(run.status.get("reason"))]


def next_commands(record: RunRecord) -> Iterator[str]:
    """What a user may want to know or do next."""
    run_id = record.run_id
    if record.state is RunState.REJECTED:
        yield (
            "correct the order, and give it again"
            if record.is_order
            else "correct the request, then: trainmaster check FILE"
        )
        return
    yield f"trainmaster why {run_id}"
    if record.job is not None:
        yield f"trainmaster logs {run_id}"
        if job_kind(record.job.name) is JobKind.TUNING:
            yield f"trainmaster study {run_id}"
    elif not record.ended:
        yield "trainmaster queue"
    if record.model is not None:
        yield f"trainmaster download {run_id}"
    if not record.ended:
        yield f"trainmaster cancel {run_id}"


def drop_facts(status: Mapping[str, Any], text: str, outcome: "Outcome | None" = None) -> Iterator[Fact]:
    """The screen of a file or message without a run; `outcome` is that of an order."""
    state = str(status.get("state"))
    yield ("file" if "dropped_name" in status else "message"), [str(status.get("dropped_name") or text)]
    yield STATE, [f"{state} at {_time_text(status.get('updated_at'))}"]
    if status.get("reason"):
        yield "reason", [str(status["reason"])]
    faults = status.get("faults") or ()
    for fault in reported_faults(faults):
        yield "fault", rendered(fault, str(status.get("dropped_name") or "message").rpartition("/")[2])
    for problem in (status.get("problems") or ())[len(faults) :]:
        yield "problem", [str(problem)]
    if status.get("report_uri"):
        yield "report", [str(status["report_uri"])]
    if status.get("previous_run_id"):
        yield "last run", [str(status["previous_run_id"])]
    if outcome is not None and outcome.run_id is not None:
        yield "run", [outcome.run_id]
    yield "next", [_next_for(state, status) if outcome is None else outcome.command]


def _time_text(recorded: object) -> str:
    """A time of a status as this screen prints times; what is damaged, as it is."""
    try:
        return at(datetime.fromisoformat(str(recorded)))
    except ValueError:
        return str(recorded)


def _next_for(state: str, status: Mapping[str, Any]) -> str:
    if "rule_id" in status:
        return f"trainmaster rules show {status['rule_id']}"
    if state == "dead_letter":
        return _REPLAY
    if state == "retrying":
        return "the event is delivered again by itself; look again with this command"
    if state == "ignored":
        return "drop a corrected file: trainmaster submit FILE"
    return "trainmaster rules ls" if state == "held" else "trainmaster ls"
