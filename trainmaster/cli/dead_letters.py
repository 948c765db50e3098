"""`python -m trainmaster.cli replay`: the dead letters of a project, listed with their reasons or put back, once each."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from datetime import datetime

from google.api_core.exceptions import GoogleAPICallError, NotFound, RetryError
from google.auth.exceptions import GoogleAuthError

from trainmaster.cli.replay import Replay
from trainmaster.client.clients import log_reader, pubsub_clients
from trainmaster.client.dead_letters.letter import Letter, NoSourceError, event_key
from trainmaster.client.dead_letters.mailbox import AT_MOST, LOCAL_QUIET_S, QUIET_S, Mailbox
from trainmaster.client.dead_letters.reasons import Reasons, Said
from trainmaster.client.stack import NoStack, environment_on


class CannotAskError(Exception):
    """What the options name is not there; the message says what to do."""


def replay(options: Namespace) -> int:
    """0 once the letters are listed, or every one asked for was put back and none failed again; else 1."""
    try:
        return _replay(options, _environment(options))
    except (CannotAskError, NoStack) as fault:
        problem = str(fault)
    except NotFound as fault:
        problem = (
            f"{fault.message}\nThe dead letters are kept by the subscription {options.subscription!r} of the topology; "
            "deploy it, or name another with --subscription."
        )
    except (GoogleAPICallError, RetryError) as fault:
        problem = f"The dead letters could not be read: {fault.message}"
    except (GoogleAuthError, OSError) as fault:  # no credentials; nobody answers
        problem = (
            f"Pub/Sub or Cloud Logging could not be asked: {fault}\n"
            "For a local stack, --state DIR; for the cloud, gcloud auth application-default login."
        )
    print(problem, file=sys.stderr)
    return 1


def _environment(options: Namespace) -> Mapping[str, str]:
    if options.state is not None:
        return environment_on(options.state)
    if options.project:
        return {"GOOGLE_CLOUD_PROJECT": options.project}
    if not os.environ.get("GOOGLE_CLOUD_PROJECT"):
        raise CannotAskError(
            "Which project? --state DIR for a local stack, --project ID for the cloud, or set GOOGLE_CLOUD_PROJECT."
        )
    return os.environ


def _replay(options: Namespace, environment: Mapping[str, str]) -> int:
    project = environment["GOOGLE_CLOUD_PROJECT"]
    logs = log_reader(project=project, logging_host=environment.get("LOGGING_EMULATOR_HOST"))
    reasons = Reasons(logs, project)
    try:
        local = environment.get("PUBSUB_EMULATOR_HOST")
        with pubsub_clients(local) as (subscriber, publisher):
            mailbox = Mailbox(
                subscriber=subscriber,
                publisher=publisher,
                project=project,
                subscription_id=options.subscription,
                quiet_s=LOCAL_QUIET_S if local else QUIET_S,
            )
            with mailbox.letters() as letters:
                return _deal_with(options, mailbox, letters, reasons)
    finally:
        logs.close()


def _deal_with(options: Namespace, mailbox: Mailbox, letters: list[Letter], reasons: Reasons) -> int:
    chosen = [letter for letter in letters if not options.id or letter.id in options.id]
    unknown = sorted(set(options.id) - {letter.id for letter in letters})
    for letter_id in unknown:
        print(f"{letter_id} is no dead letter here now; --list shows those that are.", file=sys.stderr)
    if not chosen:
        print("No dead letters.")
        return 1 if unknown else 0
    since = min(letter.failed_since for letter in chosen)
    failures = reasons.failures([event_key(letter) for letter in chosen], since)
    if options.list:
        for letter in chosen:
            print(_shown(letter, failures.get(event_key(letter))))
        well = True
    else:
        run = Replay(mailbox=mailbox, reasons=reasons, wait_s=options.wait_s)
        well = run.put_back(chosen, failures)
    if len(letters) >= AT_MOST:
        print(f"These are the first {len(letters)}; there may be more.")
    return 0 if well and not unknown else 1


def _shown(letter: Letter, failure: Said | None) -> str:
    try:
        source = letter.subscription_name.rpartition("/")[2]
    except NoSourceError as fault:
        return f"{letter.id}  not to be put back: {fault}"
    what = ascii(letter.object_uri)[1:-1] or f"a message of {len(letter.data)} bytes"
    why = (
        failure.text
        if failure
        else "no log line tells: the function may have been killed, or never answered; its request log has the times"
    )
    return (
        f"{letter.id}  {source}\n"
        f"  event     {what}, of {_moment(letter.published_at)} UTC\n"
        f"  given up  {_moment(letter.given_up_at)} UTC, after {letter.deliveries} deliveries\n"
        f"  reason    {why}"
    )


def _moment(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(" ", "seconds")
