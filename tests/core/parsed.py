"""A request in bytes, read as the launch flow reads what was dropped or published."""

from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.requests.reading import checked_request, with_places
from trainmaster.orchestrator.core.requests.request import Request, RequestRules, too_large


def parse_request(
    content: bytes, *, as_json: bool, request_rules: RequestRules, name: str | None = None
) -> Request | Refused:
    """The request, or every fault of text, schema and policy."""
    refusal = too_large(len(content))
    if refusal is not None:
        return refusal
    read = parse_document(content, as_json=as_json)
    return with_places(checked_request(read, request_rules, name=name), read, request_rules.policy)
