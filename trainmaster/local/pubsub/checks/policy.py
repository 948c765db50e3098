"""How a subscription delivers: its deadlines, its patience, and when it gives a message up."""

from dataclasses import dataclass

DEFAULT_ACK_DEADLINE_S = 10
MIN_ACK_DEADLINE_S = 10
MAX_ACK_DEADLINE_S = 600
MAX_BACKOFF_S = 600.0
DEFAULT_MIN_BACKOFF_S = 10.0
DEFAULT_MAX_DELIVERY_ATTEMPTS = 5

PUSH_MIN_BACKOFF_S = 0.1
PUSH_MAX_BACKOFF_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Exponential patience between two deliveries of one message; both ends in seconds."""

    minimum_s: float
    maximum_s: float

    def delay_s(self, failures: int) -> float:
        """Seconds to wait after the given number of failures, counted from 1.

        Doubles from the minimum to the maximum. The service calls its own curve approximate and gives no
        formula: https://cloud.google.com/pubsub/docs/handling-failures#exponential_backoff
        """
        return min(self.maximum_s, self.minimum_s * 2.0 ** min(failures - 1, 60))


PUSH_BACKOFF = Backoff(minimum_s=PUSH_MIN_BACKOFF_S, maximum_s=PUSH_MAX_BACKOFF_S)
"""A push subscription without a retry policy is patient too: 100 ms to 60 s.

Source: https://cloud.google.com/pubsub/docs/push#push_backoff
"""


@dataclass(frozen=True, kw_only=True)
class DeliveryPolicy:
    """What the backlog must know of a subscription's configuration.

    `backoff` None means that a failed message is ready again at once;
    `max_attempts` None means that no message is ever given up.
    """

    ordered: bool = False
    exactly_once: bool = False
    backoff: Backoff | None = None
    max_attempts: int | None = None

    def delay_s(self, failures: int) -> float:
        """Seconds until a message that has failed this often is ready again."""
        return self.backoff.delay_s(failures) if self.backoff else 0.0

    def gives_up(self, failures: int) -> bool:
        """Whether a message that has failed this often goes to the dead-letter topic."""
        return self.max_attempts is not None and failures >= self.max_attempts


def dead_letter_attributes(
    *, subscription_id: str, project: str, failures: int, published: str
) -> dict[str, str]:
    """What a forwarded message says of its past.

    Source: https://cloud.google.com/pubsub/docs/handling-failures#how_dead_letter_topics_work
    """
    return {
        "CloudPubSubDeadLetterSourceDeliveryCount": str(failures),
        "CloudPubSubDeadLetterSourceSubscription": subscription_id,
        "CloudPubSubDeadLetterSourceSubscriptionProject": project,
        "CloudPubSubDeadLetterSourceTopicPublishTime": published,
    }
