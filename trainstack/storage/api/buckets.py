"""Buckets: insert, get, list, patch, update, delete, and the lock of a retention policy."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from trainstack.storage.api.access_controls import with_lists
from trainstack.storage.api.call import (
    Call,
    Json,
    change_bucket,
    check_bucket,
    json_answer,
    merged_fields,
    text_field,
)
from trainstack.storage.buckets.resource import bucket_json
from trainstack.storage.buckets.settings import (
    DEFAULT_LOCATION,
    changed_settings,
    location_type,
    new_settings,
)
from trainstack.storage.objects.errors import RefusedError, conflict, invalid
from trainstack.storage.objects.listing import page_token, resume_of
from trainstack.storage.objects.names import bucket_fault
from trainstack.storage.objects.preconditions import whole_number
from trainstack.storage.objects.records import BucketRecord
from trainstack.storage.store import ObjectStore

_MAX_BUCKETS = 1000


async def insert(call: Call) -> Response:
    body = await call.json("Bucket")
    name = text_field(body, "name")
    project = _project(call)
    if fault := bucket_fault(name):
        raise invalid(fault)
    store = call.store
    with store.changing() as now_us:
        fields = new_settings(body, now_us)
        _check_log_bucket(store, fields)
        if store.catalog.find_bucket(name):
            raise conflict(
                "Your previous request to create the named bucket succeeded and you already own it."
            )
        bucket = BucketRecord(name=name, project=project, created_us=now_us, fields=fields)
        bucket = with_lists(call, bucket, body)
        (store.buckets_path / name).mkdir(exist_ok=True)
        store.catalog.put_bucket(bucket)
    call.service.apply_policy(bucket)
    await call.service.threads.wait_for_refresh(name)
    return json_answer(bucket_json(bucket, call.base_url))


def _project(call: Call) -> str:
    if project := call.query.get("project", ""):
        return project
    raise RefusedError(400, "required", "Required parameter: project")


async def get(call: Call) -> Response:
    bucket = call.store.bucket(call.path["bucket"])
    check_bucket(call, bucket)
    return json_answer(bucket_json(bucket, call.base_url))


async def patch(call: Call) -> Response:
    """Merge the body into the settings. An update, by PUT, replaces all of them."""
    body = await call.json("Bucket")
    whole = call.request.method == "PUT"

    def change(bucket: BucketRecord, now_us: int) -> BucketRecord:
        if body.get("name", bucket.name) != bucket.name:
            raise invalid(f"Bucket.name cannot be changed: it is {bucket.name!r}.")
        asked = body if whole else merged_fields(bucket.fields, body)
        fields = changed_settings(dict(bucket.fields), asked, now_us)
        _check_log_bucket(call.store, fields)
        return with_lists(call, replace(bucket, fields=fields), body)

    return json_answer(bucket_json(change_bucket(call, change), call.base_url))


async def lock_policy(call: Call) -> Response:
    """Forbid for good to remove or shorten the retention policy: https://cloud.google.com/storage/docs/bucket-lock"""
    if "ifMetagenerationMatch" not in call.query:
        raise RefusedError(400, "required", "Required parameter: ifMetagenerationMatch")

    def lock(bucket: BucketRecord, _now_us: int) -> BucketRecord:
        policy = bucket.fields.get("retentionPolicy")
        if not isinstance(policy, dict):
            raise invalid("The bucket has no retention policy to lock.")
        return replace(bucket, fields={**bucket.fields, "retentionPolicy": {**policy, "isLocked": True}})

    return json_answer(bucket_json(change_bucket(call, lock), call.base_url))


def _check_log_bucket(store: ObjectStore, fields: Mapping[str, Any]) -> None:
    """Source: InvalidTargetBucketForLogging in https://cloud.google.com/storage/docs/xml-api/reference-status"""
    if "logging" in fields and store.catalog.find_bucket(fields["logging"]["logBucket"]) is None:
        raise invalid("The target bucket for logging does not exist.")


async def list_all(call: Call) -> Response:
    project, prefix = _project(call), call.query.get("prefix", "")
    begin = resume_of(call.query.get("pageToken", ""))
    most = min(whole_number(call.query, "maxResults") or _MAX_BUCKETS, _MAX_BUCKETS)
    buckets = [
        bucket
        for bucket in call.store.catalog.buckets()
        if bucket.project == project and bucket.name.startswith(prefix) and bucket.name >= begin
    ]
    answer: Json = {"kind": "storage#buckets"}
    if buckets:
        answer["items"] = [bucket_json(bucket, call.base_url) for bucket in buckets[:most]]
    if len(buckets) > most:
        answer["nextPageToken"] = page_token(buckets[most].name)
    return json_answer(answer)


async def delete(call: Call) -> Response:
    """Deletes only an empty bucket: one without objects and without any other file in its folder."""
    name = call.path["bucket"]
    await call.service.threads.wait_for_refresh(name)
    store = call.store
    folder = store.buckets_path / name
    with store.changing():
        check_bucket(call, bucket := store.bucket(name))
        if not store.catalog.is_empty(name) or any(
            not path.is_dir() or path.is_symlink() for path in folder.rglob("*")
        ):
            raise conflict("The bucket you tried to delete is not empty.")
        store.catalog.remove_bucket(name)
        store.notifications.forget(name)
        store.forget_folder(name)
        shutil.rmtree(folder, ignore_errors=True)
    call.service.apply_policy(bucket, removed=True)
    return Response(status_code=204)


async def storage_layout(call: Call) -> Response:
    bucket = call.store.bucket(call.path["bucket"])
    placement = bucket.fields.get("customPlacementConfig")
    return json_answer(
        {
            "kind": "storage#storageLayout",
            "bucket": bucket.name,
            "location": bucket.fields.get("location", DEFAULT_LOCATION),
            "locationType": location_type(bucket.fields),
            "hierarchicalNamespace": {"enabled": False},
            **({"customPlacementConfig": placement} if placement else {}),
        }
    )


async def managed_folders(call: Call) -> Response:
    """Always empty: `gcloud storage rm --recursive` lists them before it removes a bucket."""
    call.store.bucket(call.path["bucket"])
    return json_answer({"kind": "storage#managedFolders"})
