"""What an object takes over from its bucket, and what keeps it from being deleted or replaced: holds and retention.

Sources: https://cloud.google.com/storage/docs/object-holds, https://cloud.google.com/storage/docs/bucket-lock and
https://cloud.google.com/storage/docs/soft-delete; the sentences are those that clients of the service report.
"""

import dataclasses
from collections.abc import Mapping

from trainstack.instants import format_instant
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.records import BucketRecord, ObjectRecord

_HOLDS = {"temporaryHold": "Temporary", "eventBasedHold": "Event-Based"}
_US = 1_000_000


def inherited(bucket: BucketRecord, fields: Mapping[str, object]) -> dict[str, object]:
    """The fields of a new object, with the bucket's storage class and hold where it has none itself."""
    defaults: dict[str, object] = {}
    if storage_class := bucket.setting("storageClass"):
        defaults["storageClass"] = storage_class
    if bucket.setting("defaultEventBasedHold"):
        defaults["eventBasedHold"] = True
    if bucket.setting("autoclass", "enabled"):
        return {**defaults, **fields, "storageClass": "STANDARD"}  # whatever the request asks for
    return {**defaults, **fields}


def with_retention(stored: ObjectRecord, bucket: BucketRecord) -> ObjectRecord:
    """The record with `retained_us`, which an event-based hold leaves open."""
    period_s = bucket.setting("retentionPolicy", "retentionPeriod")
    if not period_s or stored.fields.get("eventBasedHold"):
        return stored
    begin_us = max(stored.created_us, stored.released_us)
    return dataclasses.replace(stored, retained_us=begin_us + int(period_s) * _US)


def old_generation(
    stored: ObjectRecord, bucket: BucketRecord, now_us: int, *, for_good: bool
) -> ObjectRecord | None:
    """What stays of a replaced or deleted generation; None if nothing does.

    Where versions are kept, a live one becomes noncurrent, unless it is deleted `for_good`, by its generation. All others
    are soft-deleted if the bucket asks for that.

    Raises:
        RefusedError: 403, a hold protects it, or retention protects it from more than becoming noncurrent.
    """
    for key, kind in _HOLDS.items():
        if stored.fields.get(key):
            raise RefusedError(
                403,
                "forbidden",
                f"Object '{stored.bucket}/{stored.name}' is under active {kind} hold and cannot be deleted,"
                " overwritten or archived until hold is removed.",
            )
    if bucket.setting("versioning", "enabled") and stored.is_live and not for_good:
        return dataclasses.replace(stored, deleted_us=now_us)
    if with_retention(stored, bucket).retained_us > now_us:
        until = format_instant(with_retention(stored, bucket).retained_us * 1000, digits=6)
        raise RefusedError(
            403,
            "retentionPolicyNotMet",
            f"Object '{stored.bucket}/{stored.name}' is subject to bucket's retention policy or object retention and"
            f" cannot be deleted or overwritten until {until}",
        )
    if duration_s := int(bucket.setting("softDeletePolicy", "retentionDurationSeconds") or 0):
        return dataclasses.replace(stored, soft_deleted_us=now_us, hard_delete_us=now_us + duration_s * _US)
    return None
