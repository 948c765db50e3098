"""`trainmaster logs`: every line of a run's jobs."""

from datetime import datetime
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.verb import JSON, TEXT, moment_option, output_option, takes_context, talk
from trainmaster.client.clients import Clients
from trainmaster.client.logs.read import LINES_MAX, Selection

if TYPE_CHECKING:
    from trainmaster.client.logs.follow import RunLog

DEFAULT_LINES = 1000


@click.command()
@click.argument("run")
@click.option("-f", "--follow", "follows", is_flag=True, help="print new lines until the run has ended")
@click.option(
    "--replica", metavar="NAME", help="only this replica, for example workerpool1-0, worker-0 or chief"
)
@click.option("--trial", metavar="N", help="only this trial of a tuning")
@click.option("--evaluation", "step", flag_value="evaluation", help="the job that scored the run's model")
@click.option("--smoke", "step", flag_value="smoke", help="the job that tried out the champion's model")
@moment_option("--since", "written since then: 10m, 2026-11-01 or a time, UTC if it has no zone")
@moment_option("--before", "written until then, in the same forms: shows the earlier part of a long log")
@click.option(
    "--limit",
    type=click.IntRange(1, LINES_MAX),
    default=DEFAULT_LINES,
    show_default=True,
    help="how many of the lines that exist to print, the last ones",
)
@output_option(TEXT, JSON)
@takes_context
def logs(
    clients: Clients,
    run: str,
    *,
    follows: bool,
    replica: str | None,
    trial: str | None,
    step: str | None,
    since: datetime | None,
    before: datetime | None,
    limit: int,
    output: str,
) -> int:
    """Print the log of RUN: what its replicas and the training service wrote, in the order of time.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message. With -o json, each line is a document.

    Exit status: 0, or with --follow 1 if the run did not succeed; 3 there is no such run, replica, trial or job; 4 the
    services are gone.
    """
    from trainmaster.cli.logs.follow import follow, waits_for
    from trainmaster.client.find import find_run
    from trainmaster.client.logs.follow import RunLog, find_run_to_follow
    from trainmaster.client.logs.read import check_selection

    if follows and before is not None:
        raise click.UsageError("--before selects lines of the past, and --follow new ones: give one of them.")
    if step is not None and (follows or replica is not None or trial is not None):
        raise click.UsageError(f"--{step} shows one job whole: leave out --follow, --replica and --trial.")
    selection = Selection(replica=replica, trial_id=trial, since=since, before=before)
    found = (find_run_to_follow if follows else find_run)(clients, run)
    check_selection(selection, found.record)
    if follows:
        return follow(clients, found.record.run_id, selection=selection, limit=limit, output=output)
    log = RunLog(clients, found, selection, step=step)
    if not log.job_ids:
        talk(waits_for(found))
        return ExitStatus.DONE
    return _print_last(log, selection, limit, output)


def _print_last(log: "RunLog", selection: Selection, limit: int, output: str) -> int:
    from rich.console import Console

    from trainmaster.cli.logs.follow import left_out_hint, show_lines
    from trainmaster.cli.logs.lanes import LogPrinter

    lines, left_out = log.last(limit)
    if left_out:
        talk(left_out_hint(lines, limit))
    if not lines:
        is_empty = selection == Selection() and not log.run.record.ended
        talk("The log is still empty." if is_empty else "No line of the log is selected.")
    lanes = LogPrinter(Console(highlight=False))
    show_lines(lines, lanes, as_json=output == JSON)
    lanes.finish()
    return ExitStatus.DONE
