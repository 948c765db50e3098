"""`trainmaster status`: one run, or a file or message without one."""

from datetime import UTC, datetime

import click

from trainmaster.cli.runs.following import run_survives_interrupt, say_change, timeout_option
from trainmaster.cli.table import print_facts
from trainmaster.cli.verb import NAME, TABLE, output_option, print_for_programs, takes_context, talk
from trainmaster.client.clients import Clients
from trainmaster.client.shown.run_screen import drop_facts, run_facts

NEWEST = 10
"""Runs that are listed where none is named."""


@click.command()
@click.argument("run", required=False)
@click.option("--wait", is_flag=True, help="until RUN has ended")
@timeout_option
@output_option()
@takes_context
def status(clients: Clients, run: str | None, *, wait: bool, timeout_s: float | None, output: str) -> int:
    """Show RUN: its state and why, its job, results, cost and problems, and the next commands.

    Without RUN it lists the newest runs, as `trainmaster ls`.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message. JSON is the run's
    record, or for a file or message without a run its status. Of a run that has not ended, `progress` is as its log
    reports it now; of a tuning the screen shows what the training service says now, and its record follows within a
    minute.

    Exit status: 0 if the run exists, however it ended (`trainmaster wait` reports the end), 3 if no run matches RUN, 5
    if with --wait it has not ended in time.
    """
    from trainmaster.client.find import Drop, find_run_or_drop

    if timeout_s is not None and not wait:
        raise click.UsageError("--timeout needs --wait.")
    if run is None:
        if wait:
            raise click.UsageError("--wait needs a RUN.")
        return _newest(clients, output)
    if wait:
        from trainmaster.client.wait import wait_for_end, wait_until_settled

        with run_survives_interrupt(run):
            ended = wait_for_end(clients, run, timeout_s=timeout_s, on_change=say_change)
            run = wait_until_settled(clients, ended).record.run_id
    now, found, machines = datetime.now(UTC), find_run_or_drop(clients, run), None
    if not isinstance(found, Drop) and output != NAME:
        from trainmaster.client.watch.machines import read_machines
        from trainmaster.client.watch.now import run_now

        found = run_now(clients, found, now)
        machines = read_machines(clients, found.record, now) if output == TABLE else None
    document = found.status if isinstance(found, Drop) else found.document
    name = str(document.get("run_id") or document.get("dropped_name") or run)
    if print_for_programs(output, lambda: document, [name]):
        return 0
    if isinstance(found, Drop):
        print_facts(drop_facts(found.status, run))
    else:
        print_facts(run_facts(found, now, is_local=clients.context.state is not None, machines=machines))
    return 0


def _newest(clients: Clients, output: str) -> int:
    from trainmaster.cli.runs.ls import NO_RUNS, print_runs
    from trainmaster.client.runs.listing import Filters, list_runs

    found = list_runs(clients, Filters(), limit=NEWEST)
    print_runs(clients, found, datetime.now(UTC), output)
    if output == TABLE:
        talk("One of them: trainmaster status RUN. More: trainmaster ls" if found.rows else NO_RUNS)
    return 0
