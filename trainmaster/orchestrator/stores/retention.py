"""The round of the policy's retention, and the objects that it removes."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from trainmaster.orchestrator.core import names
from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.retention.cleaning import Round
from trainmaster.orchestrator.core.runs.drop_status import status_object_of
from trainmaster.orchestrator.core.runs.index import INDEX_PREFIX, IndexRow, index_object, parse_row
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.sizes import MAX_CHAMPION_BYTES, MAX_ROUND_BYTES
from trainmaster.orchestrator.stores.store import Read, Store

ROUND_OBJECT = "retention.json"

HeldRound = Read[Round | None]
"""The last round; None before the first."""


class Removable(Store):
    """A bucket whose objects the retention removes."""

    def below(self, prefix: str) -> Iterator[str]:
        """The objects below the prefix, which ends in `/`."""
        yield from (listed.name for listed in self.objects.listing(self.bucket, prefix))

    def remove(self, name: str) -> None:
        """Remove the object. Safe to repeat."""
        self.objects.delete(self.bucket, name)


class Retained(Removable):
    """What the retention reads and removes in the ledger, and its round."""

    def read(self) -> HeldRound:
        """The last round; None before the first.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        return self._parse(ROUND_OBJECT, partial(decoded, Round), MAX_ROUND_BYTES)

    def replace(self, held: HeldRound, changed: Round) -> HeldRound:
        """Write the round, if it is still at the version that was read.

        Raises:
            GenerationMoved: another tick changed it first, or an order.
        """
        return self._replace(ROUND_OBJECT, held, changed)

    def uri(self) -> str:
        """The round's URI."""
        return self._uri(ROUND_OBJECT)

    def reigns(self) -> Iterator[str]:
        """The runs that are champion, or were and may be restored: one read for each champion.

        Raises:
            DocumentDamaged: what should be a champion is something else.
        """
        for listed in self.objects.listing(self.bucket, names.CHAMPIONS_PREFIX):
            champion = self._parse(listed.name, partial(decoded, Champion), MAX_CHAMPION_BYTES).document
            if champion is not None:
                reigns = (*champion.history, *([champion.current] if champion.current else []))
                yield from (reign.run_id for reign in reigns)

    def rows(self, after: str, most: int) -> Iterator[tuple[str, IndexRow | None]]:
        """The names of the newest rows in the index, or of those behind `after`, each with its row if it can be read."""
        for listed in islice(self.objects.listing(self.bucket, INDEX_PREFIX, after), most):
            yield listed.name, parse_row(listed.name, listed.metadata)

    def objects_beside(self, record: RunRecord) -> Iterator[str]:
        """The objects of the ledger that belong to the run, but for its record.

        Not the status of a file, which later copies of the file are compared with.
        """
        for prefix in names.kept_prefixes(record.run_id):
            yield from self.below(prefix)
        yield names.report_object(record.run_id)
        group = record.source.group
        if record.source.message_id is not None and (group is None or group.number == 1):
            yield status_object_of(record.source)
        yield index_object(record.history[0].at, record.run_id)
