"""`trainmaster ls`: the newest runs."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.table import print_table
from trainmaster.cli.verb import (
    NAME,
    TABLE,
    moment_option,
    output_option,
    parsed_with,
    print_for_programs,
    takes_context,
    talk,
)
from trainmaster.client.clients import Clients
from trainmaster.client.runs.facts import SHOWN_STATES, log_says_more
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.runs.index import IndexRow

if TYPE_CHECKING:
    from trainmaster.client.runs.columns import Order
    from trainmaster.client.runs.listing import RunList

LIMIT_MAX = 10_000
QUEUED_SHOWN = 5
NO_RUNS = "No runs yet. Submit one: trainmaster submit FILE"
SPARE = ("SOURCE", "COST", "DURATION", "MODEL", "AGE")
"""Columns to leave out on a narrow terminal, in this order."""


def _order_of_option(text: str) -> "Order | None":
    from trainmaster.client.runs.columns import parse_order

    return parse_order(text)


@click.command()
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(SHOWN_STATES),
    help="only in this state; may be repeated",
)
@click.option("--model", metavar="NAME", help="only of this model; * stands for any characters")
@click.option("--team", metavar="NAME", help="only of this team")
@click.option(
    "--label", "labels", multiple=True, metavar="KEY=VALUE", help="only with this label; may be repeated"
)
@click.option("--group", metavar="ID|RUN", help="only the runs of this group, or of that of RUN")
@click.option("--by", metavar="NAME", help="only sent by someone with this text in the name")
@click.option("--commit", metavar="ID", help="only from the git commit whose id begins so")
@click.option(
    "--text", metavar="TEXT", help="only with this text in the run's id, model, source or reason, in any case"
)
@moment_option("--since", "recorded since then: 2h, 7d, 2026-11-01 or a time, UTC if it has no zone")
@moment_option("--before", "recorded before that time, in the same forms: continues an earlier list")
@click.option(
    "--limit", type=click.IntRange(1, LIMIT_MAX), default=20, show_default=True, help="the most runs to list"
)
@click.option(
    "--sort",
    "order",
    metavar="[-]NAME",
    callback=parsed_with(_order_of_option),
    help="by a metric, an argument, or recorded, duration, cost, state, model or by; with - the largest first",
)
@output_option()
@takes_context
def ls(
    clients: Clients,
    *,
    states: tuple[str, ...],
    labels: tuple[str, ...],
    group: str | None,
    limit: int,
    order: "Order | None",
    output: str,
    **chosen: Any,  # Any: the other filters, of the types above
) -> int:
    """List the newest runs, with the metrics and the chief's arguments in which they differ; * marks the best value.

    The first page costs one storage operation, and one read of the end of the logs of runs that train, or ended early
    without metrics. A filter or --sort reads the index of runs, a thousand for each operation, and at most 20,000; a filter
    then says how to continue.
    """
    from trainmaster.client.find import group_id_of
    from trainmaster.client.runs.listing import Filters, KeptIndex, list_runs, parse_labels, sort_runs

    now = datetime.now(UTC)
    filters = Filters(
        states=frozenset(states),
        labels=parse_labels(labels),
        group=group_id_of(clients, group) if group else None,
        **chosen,
    )
    if order is None:
        found = list_runs(clients, filters, limit=limit)
    else:
        found = sort_runs(KeptIndex(clients).look(), filters, order, limit=limit)
        if found.rows and all(order.value_of(row) is None for row in found.rows):
            talk(f"None of these runs has {order.name!r}, so they are not sorted.")
    print_runs(clients, found, now, output, order)
    _say_the_rest(found, is_filtered=filters != Filters(), is_table=output == TABLE)
    return 0


def print_runs(
    clients: Clients, found: "RunList", now: datetime, output: str, order: "Order | None" = None
) -> None:
    """Print a list of runs in the format of `-o`, with the progress of those that train."""
    from trainmaster.client.shown.run_lines import QUEUED_LONG, queued_text

    if output != NAME and any(map(log_says_more, found.rows)):
        from trainmaster.client.watch.now import read_progress

        found = found.with_progress(read_progress(clients, found.rows), order)
    if not print_for_programs(output, lambda: found.document, (row.run_id for row in found.rows)):
        table, spare = run_table(found.rows, now, order)
        print_table(table, spare=spare)
        texts = ((row.run_id, queued_text(row.queued, now, QUEUED_LONG)) for row in found.rows)
        for run_id, text in islice(filter(all, texts), QUEUED_SHOWN):
            talk(f"{run_id}: {text}")


def run_table(
    rows: Sequence[IndexRow], now: datetime, order: "Order | None" = None
) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of the table, and the columns to leave out on a narrow terminal, in this order."""
    from trainmaster.client.runs.columns import differing_columns
    from trainmaster.client.terminal import one_line

    differing = {one_line(each.name): each for each in differing_columns(rows, order)}
    table = [
        columns(row, now)
        | {
            name: f"{one_line(each.text(row)) or '-'}{'*' if each.is_best(row) else ''}"
            for name, each in differing.items()
        }
        for row in rows
    ]
    sorted_by = () if order is None else (order.name, f"--{order.name}", order.name.upper())
    spare = [*SPARE[:3], *reversed(differing), *SPARE[3:]]
    return table, [name for name in spare if name not in sorted_by]


def columns(row: IndexRow, now: datetime) -> dict[str, str]:
    """A run as a row of the table."""
    from trainmaster.client.runs.facts import state_of
    from trainmaster.client.shown.cost_lines import row_cost
    from trainmaster.client.terminal import one_line
    from trainmaster.client.times import span
    from trainmaster.orchestrator.core.runs.index import NO_MODEL

    done = [] if row.progress_percentage is None else [f"{row.progress_percentage} %"]
    return {
        "RUN": row.run_id,
        "STATE": ", ".join([state_of(row), *([NO_MODEL] if row.lacks_model else []), *done]),
        "MODEL": one_line(in_team(row.team, row.model_name or "-")),
        "AGE": span(now - row.created_at),
        "DURATION": span(row.ended_at - row.created_at) if row.ended_at else "-",
        "COST": row_cost(row) or "-",
        "SOURCE": one_line(row.source),
    }


def _say_the_rest(found: "RunList", *, is_filtered: bool, is_table: bool) -> None:
    if not found.rows and is_table:
        talk("No run matches." if is_filtered else NO_RUNS)
    if found.undecided:
        talk(
            f"{found.undecided} runs have more labels than the index shows, and may match: trainmaster status RUN"
        )
    if found.bound_reached and found.next_before is None:
        talk(f"Only the newest {found.scanned:,} runs were sorted.")
    if found.left_out:
        talk(
            f"{found.left_out:,} more runs match: --limit {min(len(found.rows) + found.left_out, LIMIT_MAX)}"
        )
    if found.next_before is not None and (is_table or found.bound_reached):
        why = (
            f"The first {found.scanned:,} runs were searched; there are more"
            if found.bound_reached
            else "There are more"
        )
        talk(f"{why}. Continue with the same options and: --before {found.next_before.isoformat()}")
