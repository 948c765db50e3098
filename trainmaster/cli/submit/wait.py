"""`trainmaster wait`: wait until a run has ended."""

import time

import click

from trainmaster.cli.runs.following import (
    require_model_option,
    run_survives_interrupt,
    say_change,
    say_end,
    timeout_option,
)
from trainmaster.cli.verb import JSON, TEXT, output_option, print_data, print_names, takes_context
from trainmaster.client.clients import Clients
from trainmaster.client.find import Run, run_ids_of
from trainmaster.client.wait import wait_for_end, wait_until_settled


@click.command()
@click.argument("run")
@timeout_option
@require_model_option
@output_option(TEXT, JSON)
@takes_context
def wait(clients: Clients, run: str, *, timeout_s: float | None, requires_model: bool, output: str) -> int:
    """Wait until RUN has ended, and print its last state, or with -o json its record.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message; or the id of a
    group, for all its runs, whose states are printed in their order, and whose worst end counts.

    Exit status: 0 it succeeded, 1 it ended in another way or, with --require-model, without a model, 3 there
    is no such run, 5 it has not ended in time.
    """
    began, left_s, ended = time.monotonic(), timeout_s, list[Run]()
    with run_survives_interrupt(run):
        for run_id in run_ids_of(clients, run):
            found = wait_for_end(clients, run_id, timeout_s=left_s, on_change=say_change)
            ended.append(wait_until_settled(clients, found))
            left_s = None if timeout_s is None else max(0.0, began + timeout_s - time.monotonic())
    if output == JSON:
        documents = [each.document for each in ended]
        print_data(documents if len(documents) > 1 else documents[0], output)
    else:
        print_names(each.record.state for each in ended)
    return max(say_end(each, requires_model=requires_model) for each in ended)
