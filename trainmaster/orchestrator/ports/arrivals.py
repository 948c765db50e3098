"""The data events that no tick has counted yet."""

from collections.abc import Sequence
from typing import Protocol

from trainmaster.orchestrator.core.retraining.signals.arrival import ArrivedObject, Batch


class ArrivalLog(Protocol):
    """Where arrivals are kept until a tick counts them."""

    def append(self, arrival: ArrivedObject) -> int:
        """Return once the arrival is durable: how many were made so together, by whoever did it, else 0.

        Raises:
            ServiceFailed: it may or may not be durable. Appending it again is safe: it is counted once.
        """
        ...


class Arrivals(Protocol):
    """The batches that the log has written, from all its processes."""

    def names(self, most: int) -> Sequence[str]:
        """At most so many batches, oldest first. Every batch that was answered before is among all of them."""
        ...

    def read(self, names: Sequence[str]) -> Sequence[Batch]:
        """These batches; one that is gone is left out, and one that cannot be read holds no arrivals."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Remove the batches. Safe to repeat."""
        ...
