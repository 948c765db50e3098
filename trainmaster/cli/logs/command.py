"""`trainmaster logs`: every line of a run's jobs."""

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import Exit
from trainmaster.cli.verb import JSON, output_option, takes_context, talk
from trainmaster.client.durations import parse_duration
from trainmaster.client.logs.read import LINES_MAX, Selection

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.logs.follow import RunLog

TEXT = "text"
DEFAULT_LINES = 1000


def _age(_call: click.Context, _option: click.Parameter, text: str | None) -> timedelta | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command()
@click.argument("run")
@click.option("-f", "--follow", "follows", is_flag=True, help="print new lines until the run has ended")
@click.option("--replica", metavar="NAME", help="only this replica, for example workerpool1-0 or chief")
@click.option("--trial", metavar="N", help="only this trial of a tuning")
@click.option("--since", metavar="TIME", callback=_age, help="only the last while, for example 10m")
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
    clients: "Clients",
    run: str,
    *,
    follows: bool,
    replica: str | None,
    trial: str | None,
    since: timedelta | None,
    limit: int,
    output: str,
) -> int:
    """Print the log of RUN: what its replicas and the training service wrote, in the order of time.

    RUN is a run's id, the file that started it, or the id or key of a message. With -o json, each line is a document.

    Exit status: 0, or with --follow 1 if the run did not succeed; 3 there is no such run; 4 the services are gone.
    """
    from trainmaster.cli.logs.follow import follow, waits_for
    from trainmaster.client.find import find_run
    from trainmaster.client.logs.follow import RunLog

    selection = Selection(
        replica=replica, trial_id=trial, since=datetime.now(UTC) - since if since is not None else None
    )
    found = find_run(clients, run)
    if follows:
        return follow(clients, found.record.run_id, selection=selection, limit=limit, output=output)
    log = RunLog(clients, found, selection)
    if not log.job_ids:
        talk(waits_for(found))
        return Exit.DONE
    return _print_last(log, limit, output)


def _print_last(log: "RunLog", limit: int, output: str) -> int:
    lines, left_out = log.last(limit)
    if left_out:
        talk(f"Earlier lines are left out. To see more than {limit}: --limit {min(10 * limit, LINES_MAX)}")
    if not lines:
        talk("No line of the log is selected." if log.run.record.ended else "The log is still empty.")
    if output == JSON:
        for line in lines:
            click.echo(json.dumps(line.document, ensure_ascii=False))
        return Exit.DONE
    from rich.console import Console

    from trainmaster.cli.logs.lanes import Lanes

    lanes = Lanes(Console(highlight=False))
    lanes.show(lines)
    lanes.finish()
    return Exit.DONE
