"""The batches of arrivals over any object store: one object each, created once and deleted once."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

from trainmaster.orchestrator.adapters.objects import Objects
from trainmaster.orchestrator.core.errors import ObjectGone
from trainmaster.orchestrator.core.retraining.rules.names import ARRIVALS_PREFIX
from trainmaster.orchestrator.core.retraining.signals.arrival import Batch, batch_in

AT_ONCE = 10
"""Batches that are read or deleted at once: as many connections as the storage client's pool keeps."""


@dataclass(frozen=True)
class StoredArrivals:
    """See `trainmaster.orchestrator.ports.arrivals.Arrivals`."""

    objects: Objects
    bucket: str

    def names(self, most: int) -> Sequence[str]:
        listed = self.objects.listing(self.bucket, ARRIVALS_PREFIX)
        return [each.name for each in islice(listed, most)]

    def read(self, names: Sequence[str]) -> Sequence[Batch]:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            return [batch for batch in pool.map(self._batch, names) if batch is not None]

    def delete(self, names: Sequence[str]) -> None:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda name: self.objects.delete(self.bucket, name), names):
                pass

    def _batch(self, name: str) -> Batch | None:
        try:
            content = self.objects.read(self.bucket, name).content
        except ObjectGone:
            return None  # another tick has counted it
        try:
            return batch_in(name, content)
        except ValueError:
            # Nobody but the log writes here, whole objects each: somebody else's file must not stop the tick.
            return Batch(name=name, arrivals=())
