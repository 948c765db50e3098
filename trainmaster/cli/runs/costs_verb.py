"""`trainmaster costs`: what runs have cost, by model, team, user or label."""

from dataclasses import replace
from datetime import datetime

import click

from trainmaster.cli.table import print_table
from trainmaster.cli.verb import (
    JSON,
    TABLE,
    YAML,
    moment_option,
    output_option,
    print_for_programs,
    takes_context,
    talk,
)
from trainmaster.client.clients import Clients
from trainmaster.client.runs.costs import BY


@click.command()
@click.option(
    "--by", type=click.Choice(BY), default="model", show_default=True, help="what to group the runs by"
)
@moment_option(
    "--since",
    "runs recorded since then: 12h, 30d, 2026-11-01 or a time, UTC if it has no zone",
    default="30d",
)
@moment_option("--before", "runs recorded before that time, in the same forms")
@output_option(TABLE, JSON, YAML)
@takes_context
def costs(clients: Clients, *, by: str, since: datetime | None, before: datetime | None, output: str) -> int:
    """Show what runs have cost, and what those that have not ended may still cost, the dearest group first.

    By the price table and the service's times, as each run's record has it; the bill may differ. The index of runs is
    read, a thousand runs for each storage operation, and at most 20,000 runs. Persistent resources that exist have
    lines of their own, if the policy has pools: runs on them cost nothing more.
    """
    from trainmaster.client.pools import pool_costs
    from trainmaster.client.runs.costs import read_costs
    from trainmaster.client.runs.listing import Filters
    from trainmaster.client.shown.cost_lines import group_columns, pool_columns

    filters = Filters(since=since, before=before)
    found = replace(read_costs(clients, by, filters), pools=pool_costs(clients, filters))
    if not print_for_programs(output, lambda: found.document):
        rows = [group_columns(group, by.upper()) for group in (*found.groups, *found.total)]
        rows += [pool_columns(pool, by.upper()) for pool in found.pools]
        print_table(rows, spare=("UNKNOWN",))
        if not found.groups:
            talk("No run matches.")
    if found.next_before is not None:
        talk(
            f"The newest {found.scanned:,} runs are counted; there are more. "
            f"Continue with the same options and: --before {found.next_before.isoformat()}"
        )
    return 0
