"""`trainmaster queue`: which runs wait, for what, and behind which."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from trainmaster.cli.table import print_facts, print_table
from trainmaster.cli.verb import output_option, print_for_programs, takes_context, talk
from trainmaster.client.clients import Clients
from trainmaster.client.times import span

if TYPE_CHECKING:
    from trainmaster.client.runs.queue_listing import QueueListing

SPARE = ("PRIORITY", "NEXT TRY", "WAITING")
"""Columns to leave out on a narrow terminal."""


@click.command()
@click.option(
    "--team",
    metavar="NAME",
    help="only the waiting runs of this team; their positions stay those of all runs",
)
@output_option()
@takes_context
def queue(clients: Clients, team: str | None, output: str) -> int:
    """Show the runs that wait, in the order in which they are admitted, the slots in use and the starts of today.

    Of the newest 999 runs, those outside the queue are named below: those whose job the training service has not
    started, and those that pause before a retry.

    Costs six storage operations, one more for each thousand runs that started today, and with --team for each
    thousand of the newest 20,000 runs.
    """
    from trainmaster.client.deployment import read_admission
    from trainmaster.client.runs.queue_listing import read_queue, runs_outside_queue
    from trainmaster.client.shown.queue_lines import queue_facts

    admission, problem = read_admission(clients)
    if problem:
        talk(f"The limits and caps are unknown: {problem}")
    found = read_queue(clients, datetime.now(UTC), admission, team)
    found = replace(found, outside=runs_outside_queue(clients, team))
    if not print_for_programs(output, lambda: found.document, (each.run_id for each in found.waiting)):
        print_table(queue_rows(found), spare=SPARE)
        if not found.waiting:
            talk("No run is in the queue.")
        print_facts(queue_facts(found))
    if not found.complete:
        talk("There are more runs or slots than are shown.")
    return 0


def queue_rows(found: "QueueListing") -> list[dict[str, str]]:
    """A row for each run that waits."""
    from trainmaster.client.shown.queue_lines import waits_text

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
