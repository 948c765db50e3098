"""`trainmaster cancel`: end runs."""

from collections.abc import Mapping

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.runs.following import order_survives_interrupt
from trainmaster.cli.verb import print_names, says_where, takes_context_to_change, talk
from trainmaster.client.clients import Clients
from trainmaster.client.find import Run, find_run, is_from, local_file, run_ids_of
from trainmaster.client.terminal import one_line
from trainmaster.client.wait import wait_for_end
from trainmaster.orchestrator.core.runs.states import RunState


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--wait", is_flag=True, help="until each run has ended")
@takes_context_to_change
def cancel(clients: Clients, runs: tuple[str, ...], wait: bool) -> int:
    """End each RUN: a waiting run gets no job, and a job is cancelled.

    RUN is a run's id, that of a group for all its runs, a file, or the id or key of a message. A file means its only run
    that has not ended; if there are several, it is refused, and their ids are printed. So is a file of yours that was edited since, or that only has the
    name of the one that started a run. If one of several RUNs is unknown or refused, none is cancelled. A run that has ended stays as it is. Prints the ids of the
    runs.

    Exit status: 0 done, 1 with --wait, if a run ended in another way, 2 refused, 3 there is no such run, 5 the service
    has not answered in time.
    """
    from trainmaster.client.rules.orders import cancel_run

    texts = [text for each in runs for text in run_ids_of(clients, each)]
    named = _runs_to_cancel(clients, {each: find_run(clients, each, is_to_change=True) for each in texts})
    found, ordered = {run.record.run_id: run.record for run in named}, set[str]()
    for run_id, record in found.items():
        if record.ended:
            talk(f"{run_id} has already ended: {record.state}.")
        else:
            group = record.source.group
            order_id = group.id if group is not None and group.id in runs else run_id
            if order_id not in ordered:
                ordered.add(order_id)
                says_where(clients, f"Cancelling {order_id}")
                with order_survives_interrupt(f"trainmaster status {run_id}"):
                    cancel_run(clients, record, order_id)
        if not wait:
            print_names([run_id])
    if not wait:
        return ExitStatus.DONE
    with order_survives_interrupt("trainmaster ls"):
        ended = [wait_for_end(clients, run_id).record for run_id in found]
    print_names(f"{record.run_id} {record.state}" for record in ended)
    return ExitStatus.DONE if all(each.state is RunState.CANCELLED for each in ended) else ExitStatus.FINDING


def _runs_to_cancel(clients: Clients, named: Mapping[str, Run]) -> list[Run]:
    """The run of each text; of a file the only one that is active, or the latest if none is.

    Raises:
        Stop: a file has several active runs.
    """
    from trainmaster.client.rules.orders import active_runs_of_file

    found: list[Run] = []
    refused: list[str] = []
    for text, run in named.items():
        # Only a run that was found by its file or message has a status; `latest` and ids name one run.
        is_file = run.status is not None and run.record.source.object_name is not None
        active = active_runs_of_file(clients, run) if is_file else []
        if active and (file := local_file(clients, text)) is not None:
            active = [each for each in active if is_from(clients, file, each)]
        if len(active) > 1:
            groups = ((each.record.run_id, each.record.source.group) for each in active)
            ids = dict.fromkeys(run_id if group is None else group.id for run_id, group in groups)
            commands = "".join(f"\n  trainmaster cancel {each}" for each in ids)
            refused.append(
                f"{one_line(text)!r} means {len(active)} active runs. Cancel one by its id:{commands}"
            )
        found.append(active[0] if active else run)
    if refused:
        raise Stop(ExitStatus.USAGE, "\n".join(refused))
    return found
