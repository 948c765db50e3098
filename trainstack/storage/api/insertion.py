"""Creates the object from an upload's request and bytes: the last step of every kind of upload."""

from typing import Any

from trainstack.storage.api.access_controls import new_access
from trainstack.storage.api.call import Call, Json, header_field, object_fields, text_field
from trainstack.storage.api.encryption import new_encryption
from trainstack.storage.authorization import lacking, may_create
from trainstack.storage.drops.scanner import DEFAULT_CONTENT_TYPE
from trainstack.storage.objects.errors import RefusedError, invalid
from trainstack.storage.objects.preconditions import Insertion
from trainstack.storage.objects.records import ObjectRecord
from trainstack.storage.objects.staging import Staged

_HASHES = {"crc32c": "crc32c", "md5": "md5Hash"}


def insertion_of(call: Call, metadata: Json, media_type: str) -> Insertion:
    """The insertion that the query, the metadata and the media type describe.

    Raises:
        RefusedError: 400 for a parameter; 403 if the caller may not create the object.
    """
    name = text_field(metadata, "name") or call.query.get("name", "")
    if not name:
        raise invalid("Required parameter: name; give it in the metadata or the query.")
    bucket = call.path["bucket"]
    may_create(call.service.grants, call.store, bucket, name)
    return new_insertion(
        call,
        bucket,
        name,
        metadata,
        content_type=header_field(metadata, "contentType") or media_type or DEFAULT_CONTENT_TYPE,
        fields={
            **({"contentEncoding": encoding} if (encoding := call.query.get("contentEncoding")) else {}),
            **object_fields(metadata),
            **new_encryption(call, bucket),
        },
        md5=text_field(metadata, "md5Hash"),
        crc32c=text_field(metadata, "crc32c"),
    )


def new_insertion(call: Call, bucket: str, name: str, metadata: Json, **described: Any) -> Insertion:
    """The insertion with the query's conditions, the access control list that the metadata asks for, and these fields."""
    if_replaced = lacking(call.service.grants, "storage.objects.delete", bucket, name)
    access = new_access(call, bucket, metadata)
    return Insertion(
        bucket=bucket, name=name, if_replaced=if_replaced, conditions=call.conditions(), **access, **described
    )


async def put(call: Call, staged: Staged, insertion: Insertion, *, composite: bool = False) -> ObjectRecord:
    """Create an object from the staged bytes, if they match the client's hashes. A composite has no MD5.

    Raises:
        RefusedError: 400 for a hash that differs; also as in `Store.put`.
    """
    check_hashes(call, staged, md5Hash=insertion.md5, crc32c=insertion.crc32c)
    await call.service.settle(insertion)
    return call.store.put(staged, insertion, composite=composite)


def check_hashes(call: Call, staged: Staged, **sent: str) -> None:
    """Raises `RefusedError` (400) if the bytes do not have the hashes that the client sent, also in the request's headers."""
    sent |= _header_hashes(call)
    for key, computed in (("md5Hash", staged.digest.md5), ("crc32c", staged.digest.crc32c)):
        if sent.get(key) and sent[key] != computed:
            raise RefusedError(
                400,
                "invalid",
                f"Provided {key} {sent[key]!r} doesn't match calculated {key} {computed!r}.",
                xml_code="BadDigest",
            )


def _header_hashes(call: Call) -> dict[str, str]:
    """`X-Goog-Hash: crc32c=…,md5=…` by the API's keys."""
    pairs = call.request.headers.get("x-goog-hash", "").split(",")
    hashes = (pair.strip().partition("=") for pair in pairs)
    return {_HASHES[name]: value for name, _, value in hashes if name in _HASHES}
