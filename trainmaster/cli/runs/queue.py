"""`trainmaster queue`: which runs wait, for what, and behind which."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from trainmaster.cli.table import print_facts, print_table
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
from trainmaster.client.terminal import Fact, plural
from trainmaster.client.times import span

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.runs.queue import Queue
    from trainmaster.orchestrator.core.policy.admission import Admission

SUBMITTED_SHOWN = 5
SPARE = ("PRIORITY", "NEXT TRY", "WAITING")
"""Columns to leave out on a narrow terminal."""


@click.command()
@click.option(
    "--team",
    metavar="NAME",
    help="only the waiting runs of this team; their positions stay those of all runs",
)
@output_option(TABLE, JSON, YAML, NAME)
@takes_context
def queue(clients: "Clients", team: str | None, output: str) -> int:
    """Show the runs that wait, in the order in which they are admitted, the slots in use and the starts of today.

    A run that was admitted may still wait at the training service. Of the newest 999 runs, those whose job has not
    started are named below.

    Costs six storage operations, one more for each thousand runs that started today, and with --team for each
    thousand of the newest 20,000 runs.
    """
    from trainmaster.client.runs.queue import read_queue, submitted_runs

    found = read_queue(clients, datetime.now(UTC), _admission(clients), team)
    found = replace(found, submitted=submitted_runs(clients, team))
    if output == NAME:
        print_names(each.run_id for each in found.waiting)
    elif output != TABLE:
        print_data(found.document, output)
    else:
        print_table(queue_rows(found), spare=SPARE)
        if not found.waiting:
            talk("No run waits to be submitted." if found.submitted else "No run waits.")
        print_facts(queue_facts(found))
    if not found.complete:
        talk("There are more runs or slots than are shown.")
    return 0


def _admission(clients: "Clients") -> "Admission | None":
    """Limits and caps of the deployment's policy; None where it is not published."""
    from trainmaster.client.deployment import admission_of, read_deployment
    from trainmaster.client.errors import NotFound, Refused

    try:
        return admission_of(read_deployment(clients))
    except (NotFound, Refused) as error:
        talk(f"The limits and caps are unknown: {error}")
        return None


def queue_rows(found: "Queue") -> list[dict[str, str]]:
    """A row for each run that waits."""
    from trainmaster.client.runs.queue import waits_text

    positions = {each.run_id: each.position for each in found.waiting}
    return [
        {
            "#": str(each.position),
            "RUN": each.run_id,
            "PRIORITY": str(each.priority),
            "WAITING": span(found.at - each.arrived_at),
            "NEXT TRY": f"in {span(each.not_before - found.at)}" if each.not_before > found.at else "now",
            "WAITS FOR": waits_text(each, positions.get(each.behind or "")),
        }
        for each in found.waiting
    ]


def queue_facts(found: "Queue") -> Iterator[Fact]:
    """The jobs that have not started, the slots in use, and what counts towards the caps."""
    if found.submitted:
        named = found.submitted[:SUBMITTED_SHOWN]
        more = len(found.submitted) - len(named)
        yield (
            "submitted",
            [
                f"{plural(len(found.submitted), 'run')} at the training service, not started yet:",
                *named,
                *([f"and {more} more: trainmaster ls --state submitted"] if more else []),
            ],
        )
    for limit in found.limits:
        runs = [slot.run_id for slot in found.slots if slot.limit == limit.name]
        of = "" if limit.jobs is None else f" of {limit.jobs}"
        by = f", by {', '.join(runs)}" if runs else ""
        yield "limit", [f"{limit.name}: {limit.in_use}{of} in use{by}"]
    yield "started", [_started_text(found)]
    for cap in found.caps_reached:
        name, _, period = cap.partition("/")
        yield "cap reached", [f"{name} of {period} (UTC): more runs are rejected until it is over"]


def _started_text(found: "Queue") -> str:
    started, caps = found.started, found.caps
    an_hour = f" of {caps.runs_per_hour}" if caps and caps.runs_per_hour is not None else ""
    text = f"{started.this_hour}{an_hour} this hour, {started.today} today (UTC)"
    if started.may_cost_today is None:
        return text
    a_day = f" of {caps.cost_per_day:.2f} {caps.currency}" if caps and caps.cost_per_day is not None else ""
    return f"{text}, each counted at its maximum cost: {started.may_cost_today:.2f}{a_day}"
