"""`trainmaster clean`: what the policy no longer keeps."""

from datetime import UTC, datetime

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.table import print_table
from trainmaster.cli.verb import (
    JSON,
    TABLE,
    YAML,
    confirm_removal,
    output_option,
    print_for_programs,
    says_where,
    takes_context_to_change,
    takes_team,
    talk,
    wait_option,
)
from trainmaster.client.clients import Clients


@click.command()
@click.option("--plan", "plans", is_flag=True, help="only show what would be removed")
@click.option("--yes", is_flag=True, help="do not ask")
@output_option(TABLE, JSON, YAML)
@wait_option(120.0, "how long to wait for the service's answer")
@takes_team
@takes_context_to_change
def clean(clients: Clients, *, plans: bool, yes: bool, output: str, wait_s: float) -> int:
    """Remove the runs, checkpoints and models that the policy's `retention` no longer keeps, and show which.

    The service does so once a day, in its ticks; this verb orders it to begin now. It never removes a champion, an earlier
    one, what these were derived from, or anything of a run that has not ended. Costs a storage operation for each run.

    Exit status: 0 done, 2 refused, for example because the policy keeps everything, 5 no answer in time.
    """
    from trainmaster.client.clean_plan import read_clean_plan
    from trainmaster.client.rules.orders import give_order
    from trainmaster.client.shown.clean_lines import model_columns, stay_lines, total_line

    plan = read_clean_plan(clients, datetime.now(UTC))
    if not print_for_programs(output, lambda: plan.document):
        print_table(model_columns(plan))
        for line in (*stay_lines(plan), total_line(plan)):
            talk(line)
    if plan.bound_reached:
        talk(f"The newest {plan.scanned:,} runs were read; the service continues with the older ones.")
    if plans or not (plan.removed_runs or plan.bound_reached):
        return ExitStatus.DONE
    confirm_removal(f"Remove these in {clients.context.title}? They cannot be restored.", "Removing", yes=yes)
    says_where(clients, "Removing them with the next ticks")
    give_order(clients, {"clean": {}}, team=clients.context.team, timeout_s=wait_s)
    return ExitStatus.DONE
