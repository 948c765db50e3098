"""Whether what came in asks for the same as something before it.

A message with an idempotency key is the same request as an earlier one if its document is the same, however it is
formatted; with another document, it is refused.
"""

import hashlib
import json

from trainmaster.orchestrator.core.documents.document import is_json, parse_document
from trainmaster.orchestrator.core.documents.faults import Refused, refusal_of
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES


def document_id(content: bytes) -> str:
    """The same for every text of the same document; of a text that cannot be read, for the same bytes."""
    if len(content) <= MAX_REQUEST_BYTES:
        read = parse_document(content, as_json=is_json(content))
        content = content if read.faults else json.dumps(read.value, sort_keys=True).encode()
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def is_key_reused(recorded_id: str | None, source: Source) -> bool:
    """Whether the key of the message named another document before; `recorded_id` is that document's."""
    return source.idempotency_key is not None and recorded_id not in (None, source.content_id)


def key_refusal(source: Source, run_id: str) -> Refused:
    """The refusal of a message whose key named another document before."""
    return refusal_of(
        problem=f"its idempotency_key named another document before: {run_id}",
        value=source.idempotency_key,
        repair="give each request or order a key of its own, for example with the date in it",
    )
