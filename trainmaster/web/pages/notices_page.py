"""Notices: what was sent, or would have been sent, to the policy's receivers, and what became of it."""

from trainmaster.client.notices import SHOWN_MAX, list_notices, notices_document
from trainmaster.client.shown.notice_lines import delivery_text
from trainmaster.orchestrator.core.notices.deliveries import NoticeDeliveries
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute

ROWS_MAX = 50


def notices(ask: Ask) -> ConsolePage:
    """The newest notices that a receiver gets."""
    rows = [
        (
            each,
            [(name, delivery, delivery_text(delivery)) for name, delivery in sorted(each.receivers.items())],
        )
        for each in _read(ask, ROWS_MAX)
    ]
    values = {"rows": rows, "is_local": ask.source.clients.context.state is not None}
    return ConsolePage(
        title="Notices",
        template="notices.html",
        values=values,
        command="trainmaster notices ls",
        is_final=True,
    )


def _read(ask: Ask, limit: int) -> list[NoticeDeliveries]:
    return ask.source.read(("notices", limit), AnswerAge.SLOW, lambda clients: list_notices(clients, limit))


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/notices", show=notices)],
    api=[
        ApiRoute(
            path="/notices",
            summary=f"The newest {SHOWN_MAX} notices that receivers get, and what became of each.",
            read=lambda ask: notices_document(_read(ask, SHOWN_MAX)),
            schema="notice_list.v1",
        )
    ],
)
