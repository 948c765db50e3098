"""Records as JSON API resources.

Source: https://cloud.google.com/storage/docs/json_api/v1/objects and …/notifications
"""

import json
from functools import lru_cache
from urllib.parse import quote

from trainstack.instants import format_instant
from trainstack.storage.objects.preconditions import etag_of
from trainstack.storage.objects.records import NotificationConfig, ObjectRecord

WRITABLE_OBJECT_FIELDS = (
    *("cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "customTime"),
    *("storageClass", "metadata", "temporaryHold", "eventBasedHold"),
)


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
        "storageClass": "STANDARD",
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


@lru_cache(maxsize=2048)  # as many as records that the catalog keeps
def object_text(stored: ObjectRecord, base_url: str, with_hashes: bool) -> str:
    """`object_json` as JSON."""
    resource = object_json(stored, base_url, with_hashes=with_hashes)
    return json.dumps(resource, ensure_ascii=False, separators=(",", ":"))


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
