"""Values that are documents, and JSON documents of buckets, each read up to a limit."""

from typing import TYPE_CHECKING, Any

from trainmaster.client.errors import NotFound
from trainmaster.orchestrator.core.documents.codec import encoded, parse_json
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.core.sizes import MAX_BOOK_BYTES

if TYPE_CHECKING:
    from google.cloud.storage import Client as StorageClient

DOCUMENT_MAX_BYTES = MAX_BOOK_BYTES
"""The rule book is the largest document of the ledger."""
SILENCE_MAX_S, SHORT_SILENCE_MAX_S = 60.0, 10.0
"""How long one request waits for the next bytes; the shorter where the caller limits the repeats."""


class Encoded:
    """A dataclass whose fields are those of its document; one that is None is left out."""

    @property
    def document(self) -> dict[str, Any]:
        document: Any = encoded(self)
        return dict(document)


def read_bytes(
    storage: "StorageClient",
    bucket: str,
    name: str,
    most: int,
    *,
    generation: int | None = None,
    retry_s: float | None = None,
) -> bytes | None:
    """The object's content, of a larger one `most` bytes and one more; None if there is no such object, or generation.

    `retry_s` as in `read_json`, which raises the same.
    """
    from google.api_core.exceptions import NotFound as ObjectNotFound
    from google.cloud.storage.retry import DEFAULT_RETRY

    retry = DEFAULT_RETRY if retry_s is None else DEFAULT_RETRY.with_timeout(retry_s)
    silence_s = SILENCE_MAX_S if retry_s is None else SHORT_SILENCE_MAX_S
    blob = storage.bucket(bucket).blob(name, generation=generation)
    try:
        return bytes(blob.download_as_bytes(end=most, raw_download=True, retry=retry, timeout=silence_s))
    except ObjectNotFound:
        return None


def read_json(
    storage: "StorageClient", bucket: str, name: str, *, retry_s: float | None = None
) -> dict[str, Any] | None:
    """The JSON document in this object, or None if the object does not exist.

    Args:
        storage: the client.
        bucket: without gs://.
        name: of the object.
        retry_s: how long the client repeats the read while nothing answers, in seconds; None for its default, 120.

    Raises:
        NotFound: the object is not a JSON document, or larger than DOCUMENT_MAX_BYTES.
        google.api_core.exceptions.GoogleAPICallError: the object cannot be read.
    """
    content = read_bytes(storage, bucket, name, DOCUMENT_MAX_BYTES, retry_s=retry_s)
    if content is None:
        return None
    uri = object_uri(bucket, name)
    if len(content) > DOCUMENT_MAX_BYTES:
        raise NotFound(f"{uri} is damaged: it has more than {DOCUMENT_MAX_BYTES} bytes.")
    try:
        document = parse_json(content)
    except ValueError as fault:
        raise NotFound(f"{uri} is damaged: it is not a JSON document ({fault}).") from fault
    if not isinstance(document, dict):
        raise NotFound(f"{uri} is damaged: it is not a JSON object.")
    return document
