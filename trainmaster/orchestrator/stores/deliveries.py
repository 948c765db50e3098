"""The deliveries of notices to receivers: one object a notice, which the ledger bucket's lifecycle removes after 30 days."""

from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.notices.deliveries import (
    NoticeDeliveries,
    deliveries_object,
    merged_deliveries,
    parse_deliveries,
)
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES
from trainmaster.orchestrator.stores.store import Store


class Deliveries(Store):
    """What was sent for each notice, and to which receiver."""

    def find(self, notice: Notice) -> NoticeDeliveries | None:
        """The notice's deliveries so far; None before the first."""
        stored = self._find_bounded(deliveries_object(notice.id, notice.time), MAX_MARK_BYTES)
        return parse_deliveries(stored.content) if stored else None

    def record(self, made: NoticeDeliveries) -> None:
        """Add these deliveries to those on record; what another delivery of the event has finished stays.

        Raises:
            GenerationMoved: the object kept changing.
        """
        self._change(
            deliveries_object(made.id, made.time),
            lambda content: encoded(merged_deliveries(parse_deliveries(content), made)),
            MAX_MARK_BYTES,
        )
