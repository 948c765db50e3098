"""`trainmaster notices`: what was sent to the policy's receivers, and a test of one of them."""

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.verb import (
    output_option,
    print_for_programs,
    says_where,
    takes_context,
    takes_context_to_change,
    talk,
    wait_option,
)
from trainmaster.client.clients import Clients


@click.group()
def notices() -> None:
    """List what was sent to Slack, webhooks, e-mail and GitHub, or test a receiver of the policy."""


@notices.command()
@click.option("--limit", type=click.IntRange(1, 200), default=20, show_default=True, help="how many")
@output_option()
@takes_context
def ls(clients: Clients, limit: int, output: str) -> int:
    """Show the newest notices that receivers get, and what became of each.

    Costs two storage operations, and one for each notice.
    """
    from trainmaster.client.notices import list_notices, notices_document
    from trainmaster.client.shown.notice_lines import deliveries_text
    from trainmaster.client.terminal import one_line
    from trainmaster.client.times import utc_text

    found = list_notices(clients, limit)
    if not print_for_programs(output, lambda: notices_document(found), (each.id for each in found)):
        for each in found:
            click.echo(
                f"{utc_text(each.time)}  {one_line(deliveries_text(each))}\n  {one_line(each.message)}"
            )
        if not found:
            talk(f"No notices were sent from {clients.context.title}. The policy's `notify` names receivers.")
    return ExitStatus.DONE


@notices.command()
@click.argument("receiver", metavar="RECEIVER")
@wait_option(30.0, "how long to wait for the receiver's answer")
@takes_context_to_change
def test(clients: Clients, receiver: str, wait_s: float) -> int:
    """Send a notice to one RECEIVER of the policy, whatever its `when` says.

    Exit status: 0 it was delivered, 1 it was not, 2 the policy has no such receiver, 5 there was no answer in time.
    """
    from trainmaster.client.notices import publish_test, wait_for_delivery
    from trainmaster.client.shown.notice_lines import delivery_text
    from trainmaster.orchestrator.core.notices.deliveries import DeliveryState

    says_where(clients, f"Testing {receiver}")
    delivery = wait_for_delivery(clients, publish_test(clients, receiver), receiver, wait_s)
    if delivery is None:
        talk("The function has not reported on it yet: trainmaster notices ls")
        return ExitStatus.TIMED_OUT
    click.echo(f"{receiver}  {delivery_text(delivery)}")
    return ExitStatus.DONE if delivery.state is DeliveryState.DELIVERED else ExitStatus.FINDING
