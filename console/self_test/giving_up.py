"""Whether events that keep failing come to the dead letters: Eventarc's own subscriptions forget it by default."""

from typing import TYPE_CHECKING

from console.self_test.deployment import Deployment
from console.self_test.finding import Finding, failed, ok
from console.self_test.repair import redeploy

if TYPE_CHECKING:
    from google.pubsub_v1 import SubscriberClient

_LISTED_S = 60.0


def those_that_give_up(deployment: Deployment, subscriber: "SubscriberClient") -> tuple[str, ...]:
    """The full names of the subscriptions whose messages go to the deployment's dead letters.

    Raises:
        GoogleAPICallError: subscriptions may not be listed.
    """
    dead_letters = deployment.topic("dead_letters").resource
    listed = subscriber.list_subscriptions(project=f"projects/{deployment.project}", timeout=_LISTED_S)
    return tuple(
        sorted(each.name for each in listed if each.dead_letter_policy.dead_letter_topic == dead_letters)
    )


def giving_up_finding(deployment: Deployment, subscriptions: tuple[str, ...]) -> Finding:
    """Of every function that is to have dead letters. Eventarc names subscriptions after the trigger.

    Source: subscription names in https://cloud.google.com/eventarc/docs/retry-events
    """
    check = "events that keep failing"
    functions = [
        name for name, function in deployment.topology["functions"].items() if "dead_letter" in function
    ]
    without = [
        name
        for name in functions
        if not any(f"-{name}-sub" in subscription for subscription in subscriptions)
    ]
    if not without:
        return ok(check, f"those of {len(functions)} functions become dead letters")
    said = f"those of {', '.join(without)} are dropped after a day: their subscriptions give up to no dead letters"
    return failed(check, said, redeploy(deployment))
