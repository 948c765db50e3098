"""`trainmaster dead-letters ls` and `replay`."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import click
from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError
from google.auth.exceptions import GoogleAuthError

from trainmaster.cli.dead_letters.replay import Replay
from trainmaster.client.clients import log_reader, pubsub_clients
from trainmaster.client.dead_letters.letter import Letter, NoSourceError, event_key
from trainmaster.client.dead_letters.mailbox import AT_MOST, LOCAL_QUIET_S, QUIET_S, Mailbox
from trainmaster.client.dead_letters.reasons import FunctionLine, Reasons
from trainmaster.client.stack import NoStack, environment_on

F = TypeVar("F", bound=Callable[..., int])


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """The selected dead letters of a project, claimed by this command."""

    mailbox: Mailbox
    reasons: Reasons
    chosen: Sequence[Letter]
    failures: Mapping[str, FunctionLine]  # by event key
    unknown: Sequence[str]  # ids that are not dead letters
    may_be_more: bool

    def status(self, *, well: bool = True) -> int:
        """The exit status, after what is still to say."""
        for letter_id in self.unknown:
            click.echo(
                f"{letter_id} is not a dead letter here; `trainmaster dead-letters ls` lists those that are.",
                err=True,
            )
        if not self.chosen:
            click.echo("No dead letters.")
        elif self.may_be_more:
            click.echo(f"These are the first {AT_MOST}; there may be more.")
        return 0 if well and not self.unknown else 1


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
        click.option(
            "--project", metavar="ID", help="this project in Google Cloud; default: the environment's"
        ),
        click.option("--state", type=Path, metavar="DIR", help="the running local stack on this folder"),
        click.argument("ids", nargs=-1, metavar="[ID]..."),
    ):
        verb = decorate(verb)
    return verb


@click.group("dead-letters")
def dead_letters() -> None:
    """List or replay the events that kept failing. An ID is as `ls` prints it; without one, all are meant."""


@dead_letters.command()
@_common
def ls(ids: tuple[str, ...], state: Path | None, project: str | None, subscription: str) -> int:
    """Show the dead letters and why each failed."""
    with _opened(ids, _environment(state, project), subscription) as opened:
        for letter in opened.chosen:
            click.echo(_shown(letter, opened.failures.get(event_key(letter))))
        return opened.status()


@dead_letters.command()
@_common
@click.option(
    "--wait-s",
    type=float,
    default=30.0,
    show_default=True,
    metavar="S",
    help="how long to wait for their outcome",
)
def replay(
    ids: tuple[str, ...], state: Path | None, project: str | None, subscription: str, wait_s: float
) -> int:
    """Replay each event where it failed, and report the outcome.

    Exit status: 0 if all were replayed and none failed again, else 1.
    """
    with _opened(ids, _environment(state, project), subscription) as opened:
        run = Replay(mailbox=opened.mailbox, reasons=opened.reasons, wait_s=wait_s)
        return opened.status(well=not opened.chosen or run.put_back(opened.chosen, opened.failures))


def _environment(state: Path | None, project: str | None) -> Mapping[str, str]:
    if state is not None and project is not None:
        raise click.UsageError("--state and --project are mutually exclusive.")
    if state is not None:
        try:
            return environment_on(state)
        except NoStack as fault:
            raise click.ClickException(str(fault)) from fault
    if project:
        return {"GOOGLE_CLOUD_PROJECT": project}
    if not os.environ.get("GOOGLE_CLOUD_PROJECT"):
        raise click.UsageError(
            "Which project? --state DIR for a local stack, --project ID for the cloud, or set GOOGLE_CLOUD_PROJECT."
        )
    return os.environ


@contextmanager
def _opened(ids: Sequence[str], environment: Mapping[str, str], subscription: str) -> Iterator[_Opened]:
    try:
        with _letters(ids, environment, subscription) as opened:
            yield opened
    except NotFound as fault:
        raise click.ClickException(
            f"{fault.message}\nThe dead letters are kept by the subscription {subscription!r} of the topology; "
            "deploy it, or name another with --subscription."
        ) from fault
    except (GoogleAPICallError, RetryError) as fault:
        raise click.ClickException(f"The dead letters could not be read: {fault.message}") from fault
    except (GoogleAuthError, OSError) as fault:  # no credentials; nothing answers
        raise click.ClickException(
            f"Pub/Sub or Cloud Logging could not be reached: {fault}\n"
            "For a local stack, --state DIR; for the cloud, gcloud auth application-default login."
        ) from fault


@contextmanager
def _letters(ids: Sequence[str], environment: Mapping[str, str], subscription: str) -> Iterator[_Opened]:
    project = environment["GOOGLE_CLOUD_PROJECT"]
    local = environment.get("PUBSUB_EMULATOR_HOST")
    logs = log_reader(project=project, logging_host=environment.get("LOGGING_EMULATOR_HOST"))
    try:
        with pubsub_clients(local) as (subscriber, publisher):
            mailbox = Mailbox(
                subscriber=subscriber,
                publisher=publisher,
                project=project,
                subscription_id=subscription,
                quiet_s=LOCAL_QUIET_S if local else QUIET_S,
            )
            with mailbox.letters() as letters:
                yield _chosen(ids, mailbox, letters, Reasons(logs, project))
    finally:
        logs.close()


def _chosen(ids: Sequence[str], mailbox: Mailbox, letters: Sequence[Letter], reasons: Reasons) -> _Opened:
    chosen = [letter for letter in letters if not ids or letter.id in ids]
    keys = [event_key(letter) for letter in chosen]
    since = min((letter.failed_since for letter in chosen), default=None)
    return _Opened(
        mailbox=mailbox,
        reasons=reasons,
        chosen=chosen,
        failures={} if since is None else reasons.failures(keys, since),
        unknown=sorted(set(ids) - {letter.id for letter in letters}),
        may_be_more=len(letters) >= AT_MOST,
    )


def _shown(letter: Letter, failure: FunctionLine | None) -> str:
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
