"""Pauses between deliveries."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """The pauses between deliveries of an event that was answered with an error, rising exponentially.

    The cloud's are 10 s to 600 s: https://cloud.google.com/functions/docs/bestpractices/retries
    """

    min_s: float = 1.0
    max_s: float = 60.0
