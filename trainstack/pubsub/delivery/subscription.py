"""One subscription at run time: its configuration, its backlog, and the calls that wait for messages."""

import asyncio
import contextlib
import math
import time
from collections.abc import Iterable

from trainstack.pubsub import wire
from trainstack.pubsub.checks.settings import parse_filter
from trainstack.pubsub.delivery.backlog import Backlog, BacklogEntry, DeliveryPolicy


class Subscription:
    """In-memory state; `config` is the resource as the API shows it, `id` its number in the store."""

    def __init__(self, subscription_id: int, config: wire.Message, owed: Iterable[BacklogEntry] = ()) -> None:
        self.id = subscription_id
        self.config = config
        self.passes = parse_filter(config.filter)
        # Deliveries made before a restart must not share a serial with those after it.
        self.backlog = Backlog(owed, first_serial=time.time_ns() // 1000)
        self.deleted = False
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = math.inf
        self._news = asyncio.Event()

    @property
    def name(self) -> str:
        return str(self.config.name)

    @property
    def topic(self) -> str:
        """`_deleted-topic_` once the topic is gone."""
        return str(self.config.topic)

    @property
    def retainer(self) -> str:
        """Its name if it keeps what is acknowledged, else empty."""
        return self.name if self.config.retain_acked_messages else ""

    def key_of(self, message: wire.Message) -> str:
        """The key by which the subscription orders the message; empty if it does not."""
        return str(message.ordering_key) if self.config.enable_message_ordering else ""

    @property
    def dead_letter_topic(self) -> str:
        return str(self.config.dead_letter_policy.dead_letter_topic)

    def stop_timer(self) -> None:
        """Cancel the timer."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.timer_at = None, math.inf

    async def changed(self, timeout_s: float | None = None) -> None:
        """Return when there may be something new to deliver or to notice, or at the timeout."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._news.wait(), timeout_s)

    def notify(self) -> None:
        """Wake every caller of `changed`."""
        self._news.set()
        self._news = asyncio.Event()

    def follow_config(self, *, dead_letters: bool) -> None:
        """Apply the configuration.

        `dead_letters` says whether the dead-letter topic exists: without it, no message is dead-lettered, as
        in the service.
        """
        # Complete if set: stored configurations have their defaults filled in.
        retry = self.config.retry_policy
        self.backlog.policy = DeliveryPolicy(
            min_backoff_s=retry.minimum_backoff.ToNanoseconds() / 1e9,
            max_backoff_s=retry.maximum_backoff.ToNanoseconds() / 1e9,
            max_attempts=self.config.dead_letter_policy.max_delivery_attempts if dead_letters else None,
        )
