"""The text of a run's request as its user wrote it, with its faults."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.client.find import Run
from trainmaster.client.records import read_json
from trainmaster.client.runs.origin import submitted_text, uploaded_text
from trainmaster.client.runs.reports import reported_faults
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import split_lines
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

HIDDEN = "(this line is not shown: it may hold a secret)"


@dataclass(frozen=True, kw_only=True)
class RequestText:
    """The request's lines, None where the text is not kept any more, and every fault that was reported."""

    lines: tuple[str, ...] | None
    faults: tuple[Fault, ...] = ()
    uri: str = ""
    """Where the text is; empty where it is not kept."""


def read_request_text(clients: "Clients", run: Run) -> RequestText:
    """The text of an accepted request as the ledger keeps it; of a rejected upload as long as the inbox has that object.

    Lines of a rejected request that may hold a secret are replaced by HIDDEN.

    Raises:
        NotFound: the ledger's document is damaged, or the deployment publishes no policy.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    record = run.record
    if record.request is not None:
        uri, accepted = record.request.original.uri, submitted_text(clients, record)
        return RequestText(lines=None if accepted is None else _lines(accepted, uri), uri=uri)
    faults = _faults(clients, run)
    text = uploaded_text(clients, record.source)
    if text is None:
        return RequestText(lines=None, faults=faults)
    uri = record.source.uri or ""
    policy = deployed_terms(clients).policy
    hidden = secret_lines(
        parse_document(text.encode(), as_json=_is_json(uri)), policy.env.secrets if policy else ()
    )
    hidden |= {fault.place.line for fault in faults if fault.place and fault.place.text is None}
    lines = tuple(HIDDEN if n in hidden else line for n, line in enumerate(_lines(text, uri), 1))
    return RequestText(lines=lines, faults=faults, uri=uri)


def _lines(text: str, uri: str) -> tuple[str, ...]:
    lines = split_lines(text, as_json=_is_json(uri))
    return tuple(lines[:-1] if lines and not lines[-1] else lines)


def _is_json(uri: str) -> bool:
    return uri.lower().endswith(".json") and "/submitted/" not in uri


def _faults(clients: "Clients", run: Run) -> tuple[Fault, ...]:
    """Those of the report; if that is gone, the first ones, which the record has."""
    rejection = run.record.rejection
    if rejection is None:
        return ()
    report = read_json(clients.storage, *split_object_uri(rejection.report_uri)) or {}
    listed = report.get("faults") or rejection.faults or ()
    return tuple(reported_faults(listed))
