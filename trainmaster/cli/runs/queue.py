"""`trainmaster queue`: which runs wait, for what, and behind which."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

import click

from trainmaster.cli.table import Fact, print_facts, print_table
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
from trainmaster.client.times import span

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.runs.queue import Queue, Waits

SPARE = ("PRIORITY", "NEXT TRY", "WAITING")
"""Columns to leave out on a narrow terminal."""


@click.command()
@output_option(TABLE, JSON, YAML, NAME)
@takes_context
def queue(clients: "Clients", output: str) -> int:
    """Show the runs that wait, in the order in which they are admitted, the slots in use and the starts of today.

    Costs four storage operations, one more for each thousand runs that started today.
    """
    from trainmaster.client.runs.queue import read_queue

    found = read_queue(clients, datetime.now(UTC))
    if output == NAME:
        print_names(each.run_id for each in found.waiting)
    elif output != TABLE:
        print_data(found.document, output)
    else:
        print_table(queue_rows(found), spare=SPARE)
        if not found.waiting:
            talk("No run waits.")
        print_facts(queue_facts(found))
    if not found.complete:
        talk("There are more runs or slots than are shown.")
    return 0


def queue_rows(found: "Queue") -> list[dict[str, str]]:
    """A row for each run that waits."""
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


def waits_text(each: "Waits", position: int | None) -> str:
    """What a run waits for, and behind which place of the queue."""
    if each.limit is not None:
        what = f"a slot of {each.limit}"
    elif each.rate_limited:
        what = f"fewer requests to {each.region}"
    else:
        what = each.quota_class
    return what if position is None else f"{what}, behind #{position}"


def queue_facts(found: "Queue") -> Iterator[Fact]:
    """The slots in use, and what counts towards the caps."""
    for limit, held in groupby(found.slots, key=lambda slot: slot.limit):
        runs = [slot.run_id for slot in held]
        yield "limit", [f"{limit}: {len(runs)} in use, by {', '.join(runs)}"]
    started = found.started
    cost = f", at most {started.may_cost_today:.2f} in all" if started.may_cost_today is not None else ""
    yield "started", [f"{started.this_hour} this hour, {started.today} today (UTC){cost}"]
    for cap in found.caps_reached:
        name, _, period = cap.partition("/")
        yield "cap reached", [f"{name} of {period} (UTC): more runs are rejected until it is over"]
