"""How a subscription delivers: its deadlines, its patience, and when it gives a message up."""

from dataclasses import dataclass

DEFAULT_ACK_DEADLINE_S = 10
MIN_ACK_DEADLINE_S = 10
MAX_ACK_DEADLINE_S = 600
MAX_BACKOFF_S = 600.0
DEFAULT_MIN_BACKOFF_S = 10.0
DEFAULT_MAX_DELIVERY_ATTEMPTS = 5


@dataclass(frozen=True, kw_only=True)
class DeliveryPolicy:
    """What the backlog must know of a subscription's configuration.

    A back-off of 0 s means that a failed message is ready again at once;
    `max_attempts` None means that no message is ever given up.
    """

    min_backoff_s: float = 0.0
    max_backoff_s: float = 0.0
    max_attempts: int | None = None

    def delay_s(self, failures: int) -> float:
        """Seconds until a message that has failed this often, counted from 1, is ready again.

        Doubles from the minimum to the maximum. The service calls its own curve approximate and gives no
        formula: https://cloud.google.com/pubsub/docs/handling-failures#exponential_backoff
        """
        return min(self.max_backoff_s, self.min_backoff_s * 2.0 ** min(failures - 1, 60))

    def gives_up(self, failures: int) -> bool:
        """Whether a message that has failed this often goes to the dead-letter topic."""
        return self.max_attempts is not None and failures >= self.max_attempts
