"""`trainmaster dead-letters ls` and `replay`."""

from typing import TYPE_CHECKING

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
from trainmaster.client.times import utc_text
from trainmaster.orchestrator.core.sizes import in_bytes

if TYPE_CHECKING:
    from trainmaster.client.dead_letters.opened import ListedLetter, OpenedLetters

_IDS = click.argument("ids", nargs=-1, metavar="[ID]...")


def _status(opened: "OpenedLetters", *, well: bool = True) -> int:
    """The exit status, after what is still to say."""
    for letter_id in opened.unknown:
        talk(f"{letter_id} is not a dead letter here. List those that are: trainmaster dead-letters ls")
    if not opened.chosen and not opened.unknown:
        talk("No dead letters.")
    elif opened.may_be_more:
        talk(f"These are the first {opened.read}; there may be more.")
    if opened.unknown:
        return ExitStatus.NOT_FOUND
    return ExitStatus.DONE if well else ExitStatus.FINDING


@click.group("dead-letters")
def dead_letters() -> None:
    """List or replay the events that kept failing. An ID is as `ls` prints it; without one, all are meant."""


@dead_letters.command()
@_IDS
@output_option()
@takes_context
def ls(clients: Clients, ids: tuple[str, ...], output: str) -> int:
    """Show the dead letters and why each failed.

    Exit status: 0 done, 3 no dead letter has one of the IDs.
    """
    from trainmaster.client.dead_letters.opened import open_letters

    with open_letters(clients, ids) as opened:
        names = (letter.id for letter in opened.chosen)
        if not print_for_programs(output, lambda: opened.listed.document, names):
            for letter in opened.listed.letters:
                click.echo(_letter_text(letter))
        return _status(opened)


@dead_letters.command()
@_IDS
@wait_option(30.0, "how long to wait for their outcome")
@takes_context_to_change
def replay(clients: Clients, ids: tuple[str, ...], wait_s: float) -> int:
    """Replay each event where it failed, and report the outcome.

    Exit status: 0 if all were replayed and none failed again, else 1; 3 no dead letter has one of the IDs.
    """
    from trainmaster.client.dead_letters.opened import open_letters
    from trainmaster.client.dead_letters.replay import replay_letters

    with open_letters(clients, ids) as opened:
        if opened.chosen:
            says_where(clients, f"Replaying {len(opened.chosen)} dead letters")
        well = True
        for replayed in replay_letters(opened, wait_s=wait_s, on_problem=talk):
            well &= replayed.well
            click.echo(f"{replayed.letter_id}  {replayed.text}")
        return _status(opened, well=well)


def _letter_text(letter: "ListedLetter") -> str:
    if letter.not_replayable is not None:
        return f"{letter.id}  cannot be replayed: {letter.not_replayable}"
    what = f"a message of {in_bytes(letter.size_bytes)}"
    if letter.object_uri is not None:
        what = ascii(f"{letter.object_uri}#{letter.object_generation}")[1:-1]
    why = (
        letter.reason
        or "no log line says why: the function may have been killed or never have answered; its request log has the times"
    )
    deliveries = "? deliveries" if letter.deliveries is None else f"{letter.deliveries:d} deliveries"
    return (
        f"{letter.id}  {letter.subscription}\n"
        f"  event     {what}, of {utc_text(letter.published_at)}\n"
        f"  given up  {utc_text(letter.given_up_at)}, after {'1 delivery' if letter.deliveries == 1 else deliveries}\n"
        f"  reason    {why}"
    )
