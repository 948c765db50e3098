"""`trainmaster wait`: wait until a run has ended."""

from typing import TYPE_CHECKING

import click

from trainmaster.cli.runs.following import (
    require_model_option,
    run_survives_interrupt,
    say_change,
    say_end,
    timeout_option,
)
from trainmaster.cli.verb import JSON, TEXT, output_option, print_data, print_names, takes_context
from trainmaster.client.wait import wait_for_end, wait_until_settled

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


@click.command()
@click.argument("run")
@timeout_option
@require_model_option
@output_option(TEXT, JSON)
@takes_context
def wait(clients: "Clients", run: str, *, timeout_s: float | None, requires_model: bool, output: str) -> int:
    """Wait until RUN has ended, and print its last state, or with -o json its record.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message.

    Exit status: 0 it succeeded, 1 it ended in another way or, with --require-model, without a model, 3 there
    is no such run, 5 it has not ended in time.
    """
    with run_survives_interrupt(run):
        ended = wait_for_end(clients, run, timeout_s=timeout_s, on_change=say_change)
        ended = wait_until_settled(clients, ended)
    if output == JSON:
        print_data(ended.document, output)
    else:
        print_names([ended.record.state])
    return say_end(ended, requires_model=requires_model)
