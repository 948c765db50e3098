"""Whether a run that exists was started by the same request."""

from typing import TYPE_CHECKING

from trainmaster.client.records import read_json
from trainmaster.client.submission.prepare import Prepared
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import split_object_uri

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.find import Run


def is_same_request(clients: "Clients", run: "Run", prepared: Prepared) -> bool:
    """Whether the run's request is the prepared one: the same text, or the same canonical document.

    True for a rejected run, which has no request on record.
    """
    request = run.record.request
    if request is None or prepared.request is None:
        return True
    if encoded(request.document) == encoded(prepared.request.document):
        return True
    submitted = read_json(clients.storage, *split_object_uri(request.original.uri)) or {}
    return submitted.get("text") == prepared.content.decode("utf-8", "replace")
