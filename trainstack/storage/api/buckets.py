"""Buckets: insert, get, list, delete, and the IAM methods that clients use."""

import shutil

from starlette.responses import Response

from trainstack.iam.principals import caller
from trainstack.storage.api.call import Call, Json, json_answer, no_content, text_field
from trainstack.storage.objects.errors import RefusedError, conflict, invalid
from trainstack.storage.objects.names import bucket_fault
from trainstack.storage.objects.records import BucketRecord
from trainstack.storage.objects.resource import bucket_json

_WRITABLE = (
    *("acl", "autoclass", "billing", "cors", "defaultEventBasedHold", "defaultObjectAcl", "encryption"),
    *("iamConfiguration", "labels", "lifecycle", "location", "logging", "retentionPolicy", "rpo"),
    *("softDeletePolicy", "storageClass", "versioning", "website"),
)


async def insert(call: Call) -> Response:
    body = await call.json("Bucket")
    name = text_field(body, "name")
    project = _project(call)
    if fault := bucket_fault(name):
        raise invalid(fault)
    store = call.store
    with store.changing() as now_us:
        if store.catalog.find_bucket(name):
            raise conflict(
                "Your previous request to create the named bucket succeeded and you already own it."
            )
        bucket = BucketRecord(name=name, project=project, created_us=now_us, fields=_fields(body))
        (store.buckets_path / name).mkdir(exist_ok=True)
        store.catalog.put_bucket(bucket)
    await call.service.threads.wait_for_refresh(name)
    return json_answer(bucket_json(bucket, call.base_url))


def _project(call: Call) -> str:
    if project := call.query.get("project", ""):
        return project
    raise RefusedError(400, "required", "Required parameter: project")


async def get(call: Call) -> Response:
    bucket = call.store.bucket(call.path["bucket"])
    return json_answer(bucket_json(bucket, call.base_url))


async def list_all(call: Call) -> Response:
    project = _project(call)
    buckets = [
        bucket_json(bucket, call.base_url)
        for bucket in call.store.catalog.buckets()
        if bucket.project == project and bucket.name.startswith(call.query.get("prefix", ""))
    ]
    return json_answer({"kind": "storage#buckets", **({"items": buckets} if buckets else {})})


async def delete(call: Call) -> Response:
    """Deletes only an empty bucket: one without objects and without any other file in its folder."""
    name = call.path["bucket"]
    await call.service.threads.wait_for_refresh(name)
    store = call.store
    folder = store.buckets_path / name
    with store.changing():
        store.bucket(name)
        if not store.catalog.is_empty(name) or any(
            not path.is_dir() or path.is_symlink() for path in folder.rglob("*")
        ):
            raise conflict("The bucket you tried to delete is not empty.")
        store.catalog.remove_bucket(name)
        store.notifications.forget(name)
        store.forget_folder(name)
        shutil.rmtree(folder, ignore_errors=True)
    return no_content()


async def storage_layout(call: Call) -> Response:
    bucket = call.store.bucket(call.path["bucket"])
    return json_answer(
        {
            "kind": "storage#storageLayout",
            "bucket": bucket.name,
            "location": "US",
            "locationType": "multi-region",
            "hierarchicalNamespace": {"enabled": False},
        }
    )


async def managed_folders(call: Call) -> Response:
    """Always empty: `gcloud storage rm --recursive` lists them before it removes a bucket."""
    call.store.bucket(call.path["bucket"])
    return json_answer({"kind": "storage#managedFolders"})


async def get_iam_policy(call: Call) -> Response:
    """The policy of the bucket, or of the managed folder in it."""
    resource, folder = _iam_name(call)
    granted: Json = {"version": 1, "bindings": []}
    if call.service.grants:
        with_conditions = call.query.get("optionsRequestedPolicyVersion") == "3"
        granted = call.service.grants.policy(resource, folder, with_conditions=with_conditions)
    name = f"{resource}/managedFolders/{folder}" if folder else resource
    return json_answer(
        {"bindings": [], **granted, "kind": "storage#policy", "resourceId": name, "etag": "CAE="}
    )


async def test_iam_permissions(call: Call) -> Response:
    """All permissions, unless a stack has grants."""
    resource, folder = _iam_name(call)
    asked = call.request.query_params.getlist("permissions")
    if call.service.grants:
        asked = call.service.grants.permitted(caller().member, asked, resource, folder or None)
    return json_answer({"kind": "storage#testIamPermissionsResponse", "permissions": asked})


def _iam_name(call: Call) -> tuple[str, str]:
    """The bucket, and the managed folder in it, or an empty string.

    Raises:
        RefusedError: 404, the bucket or the folder does not exist.
    """
    bucket = f"projects/_/buckets/{call.store.bucket(call.path['bucket']).name}"
    folder = call.path.get("folder", "")
    if folder and not (call.service.grants and call.service.grants.has_folder(bucket, folder)):
        raise RefusedError(404, "notFound", "The specified managed folder does not exist.")
    return bucket, folder


def _fields(body: Json) -> Json:
    return {key: body[key] for key in _WRITABLE if body.get(key) is not None}
