"""Records as JSON API resources.

Source: https://cloud.google.com/storage/docs/json_api/v1/objects and …/buckets, …/notifications
"""

import base64
from collections.abc import Mapping
from urllib.parse import quote

from trainstack.instants import format_instant
from trainstack.storage.buckets.locations import DEFAULT, location_type
from trainstack.storage.objects.preconditions import etag_of
from trainstack.storage.objects.records import BucketRecord, NotificationConfig, ObjectRecord

WRITABLE_OBJECT_FIELDS = (
    *("cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "customTime"),
    *("storageClass", "metadata", "temporaryHold", "eventBasedHold"),
)
_DEFAULT_CLASS = "STANDARD"
_DEFAULT_ACCESS: Mapping[str, object] = {
    "publicAccessPrevention": "inherited",
    "uniformBucketLevelAccess": {"enabled": True},
}


def object_json(stored: ObjectRecord, base_url: str, *, with_hashes: bool = True) -> dict[str, object]:
    """The object resource, with links below `base_url`.

    A request without the customer's key of an object gets it without hashes.
    """
    path = f"b/{stored.bucket}/o/{quote(stored.name, safe='')}"
    created = rfc3339(stored.created_us)
    resource: dict[str, object] = {
        "kind": "storage#object",
        "id": f"{stored.bucket}/{stored.name}/{stored.generation}",
        "selfLink": f"{base_url}/storage/v1/{path}",
        "mediaLink": f"{base_url}/download/storage/v1/{path}?generation={stored.generation}&alt=media",
        "name": stored.name,
        "bucket": stored.bucket,
        "generation": str(stored.generation),
        "metageneration": str(stored.metageneration),
        "contentType": stored.content_type,
        "storageClass": _DEFAULT_CLASS,
        "size": str(stored.size),
        "md5Hash": stored.md5,
        "crc32c": stored.crc32c,
        "etag": etag_of(stored),
        "timeCreated": created,
        "updated": rfc3339(stored.updated_us),
        "timeStorageClassUpdated": created,
        "timeFinalized": created,
        **stored.fields,
    }
    for key, us in (
        ("retentionExpirationTime", stored.retained_us),
        ("timeDeleted", stored.deleted_us),
        ("softDeleteTime", stored.soft_deleted_us),
        ("hardDeleteTime", stored.hard_delete_us),
    ):
        if us:
            resource[key] = rfc3339(us)
    is_hidden = not with_hashes and "customerEncryption" in stored.fields
    for key in ("contentType", "md5Hash", "crc32c"):
        if not resource[key] or (is_hidden and key != "contentType"):
            del resource[key]
    return resource


def bucket_json(bucket: BucketRecord, base_url: str) -> dict[str, object]:
    """The bucket resource. The project number is always 1: the emulator knows only the ids of projects."""
    access = bucket.fields.get("iamConfiguration")
    return {
        "kind": "storage#bucket",
        "id": bucket.name,
        "selfLink": f"{base_url}/storage/v1/b/{bucket.name}",
        "name": bucket.name,
        "projectNumber": "1",
        "metageneration": str(bucket.metageneration),
        "location": DEFAULT,
        "locationType": (kind := location_type(bucket.fields)),
        "storageClass": _DEFAULT_CLASS,
        "etag": bucket_etag(bucket),
        "timeCreated": rfc3339(bucket.created_us),
        "updated": rfc3339(bucket.updated_us or bucket.created_us),
        "softDeletePolicy": {"retentionDurationSeconds": "0"},
        **({} if kind == "region" else {"rpo": "DEFAULT"}),
        **bucket.fields,
        "iamConfiguration": {**_DEFAULT_ACCESS, **(access if isinstance(access, dict) else {})},
    }


def bucket_etag(bucket: BucketRecord) -> str:
    """The ETag of a bucket and of its IAM policy: changes with every metageneration. The first is `CAE=`."""
    number = bucket.metageneration
    return base64.b64encode(b"\x08" + number.to_bytes(1 + number.bit_length() // 8, "big")).decode()


def notification_json(config: NotificationConfig, base_url: str) -> dict[str, object]:
    """The notificationConfigs resource, the only one whose keys have underscores."""
    return {
        "kind": "storage#notification",
        "id": str(config.id),
        "selfLink": f"{base_url}/storage/v1/b/{config.bucket}/notificationConfigs/{config.id}",
        "etag": str(config.id),
        **config.body,
    }


def rfc3339(us: int, *, digits: int = 3) -> str:
    """Microseconds since the epoch as UTC text with that many decimals."""
    return format_instant(us * 1000, digits=digits)
