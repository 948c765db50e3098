"""Checks that failing events become dead letters: Eventarc's subscriptions have no dead-letter topic by default."""

import shlex
from collections.abc import Iterable, Mapping

from google.pubsub_v1 import SubscriberClient

from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.deploy.doctor.finding import DoctorFinding, failed_finding, ok
from trainmaster.deploy.doctor.repair import redeploy

_LISTED_S = 60.0


def dead_letter_topics(deployment: ExaminedDeployment, subscriber: SubscriberClient) -> dict[str, str]:
    """The dead-letter topic of each subscription of the project, by full name; empty for none.

    Raises:
        GoogleAPICallError: the subscriptions cannot be listed.
    """
    listed = subscriber.list_subscriptions(project=f"projects/{deployment.project}", timeout=_LISTED_S)
    return {each.name: each.dead_letter_policy.dead_letter_topic for each in listed}


def subscriptions_that_give_up(deployment: ExaminedDeployment, topics: Mapping[str, str]) -> tuple[str, ...]:
    """The subscriptions in `topics` that dead-letter to the deployment's topic."""
    dead_letters = deployment.topic("dead_letters").resource
    return tuple(sorted(name for name, topic in topics.items() if topic == dead_letters))


def giving_up_finding(deployment: ExaminedDeployment, topics: Mapping[str, str]) -> DoctorFinding:
    """The finding on every function that should have dead letters. `topics`: the dead-letter topic by subscription.

    Eventarc names subscriptions after the trigger: https://cloud.google.com/eventarc/docs/retry-events
    """
    check = "events that keep failing"
    attempts = {
        f"{deployment.prefix}{name}": function["dead_letter"]["max_attempts"]
        for name, function in deployment.topology["functions"].items()
        if "dead_letter" in function
    }
    give_up = subscriptions_that_give_up(deployment, topics)
    without = [name for name in attempts if _subscription_of(deployment, name, give_up) is None]
    if not without:
        return ok(check, f"those of {len(attempts)} functions become dead letters")
    message = f"those of {', '.join(without)} are dropped after a day: their subscriptions have no dead-letter topic"
    there = {name: _subscription_of(deployment, name, topics) for name in without}
    repairs = [_give_up(deployment, each, attempts[name]) for name, each in there.items() if each is not None]
    if None in there.values():
        repairs.append(redeploy(deployment))
    return failed_finding(check, message, *repairs)


def _subscription_of(deployment: ExaminedDeployment, function: str, names: Iterable[str]) -> str | None:
    return next((name for name in names if f"-{deployment.region}-{function}-sub" in name), None)


def _give_up(deployment: ExaminedDeployment, subscription: str, attempts: int) -> str:
    """The repair command. `make deploy` does not help: Terraform updates a subscription only with its trigger."""
    topic = deployment.topic("dead_letters").resource
    words = ["gcloud", "pubsub", "subscriptions", "update", subscription]
    return shlex.join([*words, f"--dead-letter-topic={topic}", f"--max-delivery-attempts={attempts}"])
