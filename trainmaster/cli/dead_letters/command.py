"""`trainmaster dead-letters ls` and `replay`."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import click

from trainmaster.cli.exits import Exit, Stop
from trainmaster.cli.verb import says_where, takes_context, talk

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.dead_letters.letter import Letter
    from trainmaster.client.dead_letters.mailbox import Mailbox
    from trainmaster.client.dead_letters.reasons import FunctionLine, Reasons

F = TypeVar("F", bound=Callable[..., int])


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """The selected dead letters of a project, claimed by this command."""

    mailbox: "Mailbox"
    reasons: "Reasons"
    chosen: "Sequence[Letter]"
    failures: "Mapping[str, FunctionLine]"  # by event key
    unknown: Sequence[str]  # ids that are not dead letters
    read: int
    may_be_more: bool

    def status(self, *, well: bool = True) -> int:
        """The exit status, after what is still to say."""
        for letter_id in self.unknown:
            talk(f"{letter_id} is not a dead letter here. List those that are: trainmaster dead-letters ls")
        if not self.chosen and not self.unknown:
            talk("No dead letters.")
        elif self.may_be_more:
            talk(f"These are the first {self.read}; there may be more.")
        if self.unknown:
            return Exit.NOT_FOUND
        return Exit.DONE if well else Exit.FINDING


def _common(verb: F) -> F:
    """The options that `ls` and `replay` share."""
    for decorate in (
        click.option(
            "--subscription",
            default="trainmaster-dead-letters",
            show_default=True,
            metavar="ID",
            help="the subscription that keeps them",
        ),
        click.argument("ids", nargs=-1, metavar="[ID]..."),
    ):
        verb = decorate(verb)
    return verb


@click.group("dead-letters")
def dead_letters() -> None:
    """List or replay the events that kept failing. An ID is as `ls` prints it; without one, all are meant."""


@dead_letters.command()
@_common
@takes_context
def ls(clients: "Clients", ids: tuple[str, ...], subscription: str) -> int:
    """Show the dead letters and why each failed.

    Exit status: 0 done, 3 no dead letter has one of the IDs.
    """
    from trainmaster.client.dead_letters.letter import event_key

    with _opened(ids, clients, subscription) as opened:
        for letter in opened.chosen:
            click.echo(_shown(letter, opened.failures.get(event_key(letter))))
        return opened.status()


@dead_letters.command()
@_common
@click.option(
    "--wait-s",
    type=click.FloatRange(min=0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="how long to wait for their outcome",
)
@takes_context
def replay(clients: "Clients", ids: tuple[str, ...], subscription: str, wait_s: float) -> int:
    """Replay each event where it failed, and report the outcome.

    Exit status: 0 if all were replayed and none failed again, else 1; 3 no dead letter has one of the IDs.
    """
    from trainmaster.cli.dead_letters.replay import Replay

    with _opened(ids, clients, subscription) as opened:
        if opened.chosen:
            says_where(clients, f"Replaying {len(opened.chosen)} dead letters")
        run = Replay(mailbox=opened.mailbox, reasons=opened.reasons, wait_s=wait_s)
        return opened.status(well=not opened.chosen or run.put_back(opened.chosen, opened.failures))


@contextmanager
def _opened(ids: Sequence[str], clients: "Clients", subscription: str) -> Iterator[_Opened]:
    from google.api_core.exceptions import NotFound

    from trainmaster.client.dead_letters.mailbox import LOCAL_QUIET_S, QUIET_S, Mailbox
    from trainmaster.client.dead_letters.reasons import Reasons

    context = clients.context
    subscriber, publisher = clients.pubsub
    mailbox = Mailbox(
        subscriber=subscriber,
        publisher=publisher,
        project=context.project,
        subscription_id=subscription,
        quiet_s=LOCAL_QUIET_S if context.pubsub_host else QUIET_S,
    )
    try:
        with mailbox.letters() as letters:
            yield _chosen(ids, mailbox, letters, Reasons(clients.logs, context.project))
    except NotFound as fault:
        raise Stop(
            Exit.NOT_FOUND,
            f"{fault.message}\nThe dead letters are kept by the subscription {subscription!r} of the topology; "
            "deploy it, or name another with --subscription.",
        ) from fault


def _chosen(
    ids: Sequence[str], mailbox: "Mailbox", letters: "Sequence[Letter]", reasons: "Reasons"
) -> _Opened:
    from trainmaster.client.dead_letters.letter import event_key
    from trainmaster.client.dead_letters.mailbox import AT_MOST

    chosen = [letter for letter in letters if not ids or letter.id in ids]
    keys = [event_key(letter) for letter in chosen]
    since = min((letter.failed_since for letter in chosen), default=None)
    return _Opened(
        mailbox=mailbox,
        reasons=reasons,
        chosen=chosen,
        failures={} if since is None else reasons.failures(keys, since),
        unknown=sorted(set(ids) - {letter.id for letter in letters}),
        read=len(letters),
        may_be_more=len(letters) >= AT_MOST,
    )


def _shown(letter: "Letter", failure: "FunctionLine | None") -> str:
    from trainmaster.client.dead_letters.letter import NoSourceError

    try:
        source = letter.subscription_name.rpartition("/")[2]
    except NoSourceError as fault:
        return f"{letter.id}  cannot be replayed: {fault}"
    what = f"a message of {len(letter.data)} bytes"
    if letter.object is not None:
        bucket, name, generation = letter.object
        what = ascii(f"gs://{bucket}/{name}#{generation}")[1:-1]
    why = (
        failure.text
        if failure
        else "no log line says why: the function may have been killed or never have answered; its request log has the times"
    )
    return (
        f"{letter.id}  {source}\n"
        f"  event     {what}, of {_moment(letter.published_at)} UTC\n"
        f"  given up  {_moment(letter.given_up_at)} UTC, after {letter.deliveries} deliveries\n"
        f"  reason    {why}"
    )


def _moment(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(" ", "seconds")
