"""Pauses between deliveries."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Backoff:
    """Exponentially growing pauses between deliveries of an event whose function answered with an error.

    The cloud's are 10 s to 600 s: https://cloud.google.com/functions/docs/bestpractices/retries
    """

    min_s: float = 1.0
    max_s: float = 60.0
