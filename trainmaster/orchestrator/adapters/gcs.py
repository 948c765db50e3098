"""Objects in Cloud Storage, through google-cloud-storage. STORAGE_EMULATOR_HOST is the client's own variable."""

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.adapters.refusals import is_transport_error
from trainmaster.orchestrator.core import errors
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.ports.objects import Listed, Stored
from trainmaster.partial_import import IMPORTING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from google.cloud.storage import Blob, Client

SERVICE = "Cloud Storage"
TIMEOUT_S = (5.0, 15.0)  # to connect, between two bytes of the answer
RETRY_S = 20.0
"""One call, with the client's retries, ends within RETRY_S and one TIMEOUT_S: well inside a lease."""

_PERMISSIONS = {
    "read": "storage.objects.get",
    "write": "storage.objects.create",
    "copy to": "storage.objects.create",
    "delete": "storage.objects.delete",
    "list": "storage.objects.list",
}
"""By operation: https://cloud.google.com/storage/docs/access-control/iam-json"""


class _Bounded(io.BytesIO):
    """The content of a download, which ends when it exceeds the limit: the client then closes the connection."""

    def __init__(self, uri: str, max_bytes: int) -> None:
        super().__init__()
        self._uri, self._max_bytes = uri, max_bytes

    def write(self, part: "ReadableBuffer") -> int:
        written = super().write(part)
        if self.tell() > self._max_bytes:
            raise errors.ObjectTooLarge(self._uri, self._max_bytes)
        return written


class GcsObjects:
    """Objects of any bucket the project may use. The library is imported by the first call."""

    def __init__(self, project: str) -> None:
        self._project = project

    @cached_property
    def _client(self) -> "Client":
        with IMPORTING:
            from google.cloud import storage

        return storage.Client(project=self._project)

    @cached_property
    def _options(self) -> dict[str, Any]:  # Any: keyword arguments of several of the client's methods
        with IMPORTING:
            from google.cloud.storage.retry import DEFAULT_RETRY

        return {"timeout": TIMEOUT_S, "retry": DEFAULT_RETRY.with_timeout(RETRY_S)}

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        blob, uri = self._blob(bucket, name, generation), object_uri(bucket, name)
        content = _Bounded(uri, max_bytes)
        with _failures_of("read", uri, generation=generation):
            # Raw: otherwise a small object with gzip encoding could expand to any size in memory. Not a range: the
            # client compares no checksum of a range, and an empty object has none.
            blob.download_to_file(content, raw_download=True, **self._options)
        return Stored(content=content.getvalue(), generation=int(blob.generation))

    def describe(self, bucket: str, name: str, generation: int | None = None) -> Listed:
        blob = self._blob(bucket, name, generation)
        with _failures_of("read", object_uri(bucket, name), generation=generation):
            blob.reload(**self._options)
        return _listed_from(blob)

    def write(
        self,
        bucket: str,
        name: str,
        content: bytes,
        *,
        if_generation: int | None,
        metadata: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> int:
        blob = self._blob(bucket, name)
        blob.metadata = dict(metadata) if metadata else None
        with _failures_of("write", object_uri(bucket, name), if_generation=if_generation):
            blob.upload_from_string(
                content, content_type=content_type, if_generation_match=if_generation, **self._options
            )
        return int(blob.generation)

    def copy(
        self, source: tuple[str, str, int], bucket: str, name: str, *, token: str | None = None
    ) -> Listed | str:
        # With `sourceGeneration`, a replaced source is not found: 412 can only mean that the copy's name is taken.
        blob, original, uri = self._blob(bucket, name), self._blob(*source), object_uri(bucket, name)
        try:
            with _failures_of("copy to", uri, if_generation=0):
                token, _, _ = blob.rewrite(original, token=token, if_generation_match=0, **self._options)
        except errors.ObjectGone as gone:
            self.describe(*source)
            reason = "the service found neither the bucket nor an unfinished copy"
            raise errors.ServiceFailed(SERVICE, f"copy to {uri}", reason) from gone
        return _listed_from(blob) if token is None else str(token)

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        uri = object_uri(bucket, name)
        with suppress(errors.ObjectGone), _failures_of("delete", uri, if_generation=if_generation):
            self._blob(bucket, name).delete(if_generation_match=if_generation, **self._options)

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        with _failures_of("list", object_uri(bucket, prefix)):
            for blob in self._client.list_blobs(
                bucket,
                prefix=prefix,
                start_offset=f"{after} " if after else None,  # the first name behind it that can be printed
                fields="items(name,generation,size,timeCreated,crc32c,md5Hash,metadata),nextPageToken",
                **self._options,
            ):
                yield _listed_from(blob)

    def _blob(self, bucket: str, name: str, generation: int | None = None) -> "Blob":
        return self._client.bucket(bucket).blob(name, generation=generation)


def _listed_from(blob: "Blob") -> Listed:
    return Listed(
        name=blob.name,
        generation=int(blob.generation),
        size_bytes=int(blob.size),
        created_at=blob.time_created,
        crc32c=blob.crc32c or "",
        md5=blob.md5_hash,
        metadata=blob.metadata or {},
    )


@contextmanager
def _failures_of(
    operation: str, uri: str, *, generation: int | None = None, if_generation: int | None = None
) -> Iterator[None]:
    """Raise the library's error in the body as ours; a bug in this program stays as it is.

    Raises:
        ObjectGone, GenerationMoved, AccessDenied, ServiceFailed: what the error means.
    """
    try:
        yield
    except Exception as error:
        with IMPORTING:
            from google.api_core import exceptions as api
            from google.cloud.storage.exceptions import DataCorruption, InvalidResponse

        match error:
            case api.NotFound() if operation != "write":  # a write that finds nothing finds no bucket
                raise errors.ObjectGone(uri, generation) from error
            case api.Forbidden():
                # The service's message follows the method and its URL, which may be long.
                words = error.message.partition(": ")[2] or error.message
                raise errors.AccessDenied(
                    SERVICE, f"{operation} {uri}", _PERMISSIONS[operation], words
                ) from error
            case api.PreconditionFailed() if if_generation is not None:
                raise errors.GenerationMoved(uri, if_generation) from error
            case _ if is_transport_error(error) or isinstance(error, InvalidResponse | DataCorruption):
                reason = f"{type(error).__name__}: {error}"
                raise errors.ServiceFailed(SERVICE, f"{operation} {uri}", reason) from error
        raise
