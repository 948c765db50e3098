"""One subscription at run time: its configuration, its backlog, and whoever waits for it."""

import asyncio
import math
import time
from datetime import timedelta

from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.checks.filters import parse_filter
from trainmaster.local.pubsub.checks.names import DELETED_TOPIC
from trainmaster.local.pubsub.checks.policy import (
    PUSH_BACKOFF,
    Backoff,
    DeliveryPolicy,
)
from trainmaster.local.pubsub.delivery.backlog import Backlog


class Subscription:
    """State in memory; `config` is the resource as the API shows it, `id` its number in the store."""

    def __init__(self, subscription_id: int, config: wire.Message) -> None:
        self.id = subscription_id
        self.config = config
        self.passes = parse_filter(config.filter)
        # Deliveries made before a restart must not share a serial with those after it.
        self.backlog = Backlog(
            delivery_policy(config, dead_letters=False), first_serial=time.time_ns() // 1000
        )
        self.cursor = 0
        """Messages up to this id are in the backlog; the store holds the ones after it."""
        self.complete = False
        """Whether the store holds nothing beyond the cursor."""
        self.deleted = False
        self.timer: asyncio.TimerHandle | None = None
        self.timer_at = math.inf
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def name(self) -> str:
        return str(self.config.name)

    @property
    def topic(self) -> str:
        return str(self.config.topic)

    @property
    def pushes(self) -> bool:
        return bool(self.config.push_config.push_endpoint)

    @property
    def receives(self) -> bool:
        """Whether anything published can still reach it."""
        return not self.config.detached and self.topic != DELETED_TOPIC

    @property
    def dead_letter_topic(self) -> str:
        return str(self.config.dead_letter_policy.dead_letter_topic)

    @property
    def retention(self) -> timedelta:
        seconds: float = self.config.message_retention_duration.ToSeconds()
        return timedelta(seconds=seconds)

    def stop_timer(self) -> None:
        """Do not wake by itself any more."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.timer_at = None, math.inf

    async def changed(self, timeout_s: float | None = None) -> None:
        """Return when there may be something new to deliver or to notice, or when the time is up."""
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.add(waiting)
        try:
            await asyncio.wait((waiting,), timeout=timeout_s)
        finally:
            self._waiting.discard(waiting)

    def notify(self) -> None:
        """Wake everyone in `changed`."""
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)


def delivery_policy(config: wire.Message, *, dead_letters: bool) -> DeliveryPolicy:
    """How to deliver, out of the configuration.

    `dead_letters` says whether the dead-letter topic exists: without it nothing is given up, as in the service.
    """
    backoff = None
    if config.HasField("retry_policy"):
        retry = config.retry_policy  # complete, as every stored configuration is
        backoff = Backoff(
            minimum_s=_seconds(retry.minimum_backoff), maximum_s=_seconds(retry.maximum_backoff)
        )
    elif config.push_config.push_endpoint:
        backoff = PUSH_BACKOFF
    return DeliveryPolicy(
        ordered=config.enable_message_ordering,
        exactly_once=config.enable_exactly_once_delivery,
        backoff=backoff,
        max_attempts=config.dead_letter_policy.max_delivery_attempts if dead_letters else None,
    )


def _seconds(duration: wire.Message) -> float:
    return float(duration.seconds) + float(duration.nanos) / 1e9
