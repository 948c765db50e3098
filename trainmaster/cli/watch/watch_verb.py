"""`trainmaster watch`: a run from its event to its record, live."""

import click

from trainmaster.cli.verb import takes_context
from trainmaster.client.clients import Clients


@click.command()
@click.argument("run")
@takes_context
def watch(clients: Clients, run: str) -> int:
    """Show RUN as it happens: each stage, the progress of each replica, and the trials of a tuning.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message. In a pipe, each change is one line.

    Exit status: 0 it succeeded, 1 it ended in another way, 3 there is no such run, 4 the services are gone.
    """
    from rich.console import Console

    from trainmaster.cli.runs.following import run_survives_interrupt, say_end
    from trainmaster.cli.watch.run import RunView
    from trainmaster.client.logs.follow import find_run_to_follow
    from trainmaster.client.logs.survive import look_until
    from trainmaster.client.wait import wait_until_settled
    from trainmaster.client.watch.sighting import RunWatch

    found = find_run_to_follow(clients, run)
    watched = RunWatch(clients, found)
    view = RunView(Console(highlight=False))
    with run_survives_interrupt(found.record.run_id):
        with view.running():
            for seen in look_until(lambda: watched.is_over, clients.context, watched.look):
                view.show(seen)
        return say_end(wait_until_settled(clients, seen.run))
