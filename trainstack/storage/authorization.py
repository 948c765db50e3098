"""Cloud Storage's refusals for lack of a permission, in the service's form.

Its sentences are those that its clients report, for example https://github.com/zetaalphavector/InPars/issues/13.
"""

from collections.abc import Mapping

from trainstack.iam.authentication import CHALLENGE
from trainstack.iam.authorization import (
    DeniedError,
    Resource,
    authorize,
    bucket_of,
    denial,
    project_of,
    require,
)
from trainstack.iam.principals import caller
from trainstack.iam.service import BUCKETS, Grants
from trainstack.storage.acl import allows, is_uniform
from trainstack.storage.objects.errors import NoSuchObjectError, RefusedError, no_such_bucket
from trainstack.storage.objects.records import BucketRecord
from trainstack.storage.store import ObjectStore

_ON_PROJECT = frozenset(
    {
        "resourcemanager.projects.get",
        "serviceusage.services.use",
        "storage.buckets.create",
        "storage.buckets.list",
    }
)


def may_call(
    grants: Grants | None, store: ObjectStore, method: str, path: Mapping[str, str], query: Mapping[str, str]
) -> None:
    """Raises `RefusedError`: 403 if the caller may not call the method, 404 if a bucket of its path does not exist."""

    def is_listed(permission: str, resource: Resource) -> bool:
        return _is_listed(store, permission, resource, query.get("generation", ""))

    try:
        authorize(grants, method, _resources(grants, path, query), is_listed)
        if grants and grants.enforced and caller().member and "bucket" in path:
            _check_payer(grants, store.catalog.find_bucket(path["bucket"]), query.get("userProject", ""))
    except DeniedError as denied:
        missing = _missing(store, path.get("bucket", ""), path.get("to_bucket", ""))
        raise missing or _denial(denied) from denied


def _is_listed(store: ObjectStore, permission: str, resource: Resource, generation: str) -> bool:
    """Whether the object's access control list gives the caller the permission."""
    name, bucket = resource.object_name, store.catalog.find_bucket(resource.name.removeprefix(BUCKETS))
    if not permission.startswith("storage.objects.") or not name or bucket is None or is_uniform(bucket):
        return False
    stored = store.catalog.find_any(bucket.name, name, generation)
    return stored is not None and allows(stored, bucket, caller(), permission)


def may_create(grants: Grants | None, store: ObjectStore, bucket: str, name: str) -> None:
    """Raises `RefusedError`: 403 if the caller may not create the object, 404 if there is no such bucket."""
    if refused := lacking(grants, "storage.objects.create", bucket, name):
        raise _missing(store, bucket) or refused


def without_listing(grants: Grants | None, refused: RefusedError) -> RefusedError:
    """The refusal as its caller may see it: only one that may list the bucket learns that an object is missing.

    Source: https://cloud.google.com/storage/docs/json_api/v1/status-codes#404-not-found
    """
    if not isinstance(refused, NoSuchObjectError):
        return refused
    return lacking(grants, "storage.objects.list", refused.bucket, refused.name) or refused


def lacking(grants: Grants | None, permission: str, bucket: str, name: str) -> RefusedError | None:
    """The refusal of a caller without the permission on an object; None for all others."""
    try:
        require(grants, permission, bucket_of(bucket, name))
    except DeniedError as denied:
        return _denial(denied)
    return None


def _resources(
    grants: Grants | None, path: Mapping[str, str], query: Mapping[str, str]
) -> dict[str, Resource]:
    resources = {"project": project_of(grants, path.get("project") or query.get("project", ""))}
    if bucket := path.get("bucket", ""):
        resources["bucket"] = bucket_of(bucket)
        resources["prefix"] = bucket_of(bucket, query.get("prefix", ""))
        resources["object"] = bucket_of(bucket, path.get("object"))
    if "to_object" in path:
        resources["to_object"] = bucket_of(path.get("to_bucket", bucket), path["to_object"])
    return resources


def _check_payer(grants: Grants, bucket: BucketRecord | None, project: str) -> None:
    """Refuse accounts that name no project to bill where requesters pay; the owner may leave it out.

    Source: https://cloud.google.com/storage/docs/requester-pays
    """
    billing = bucket and bucket.fields.get("billing")
    if isinstance(billing, dict) and billing.get("requesterPays"):
        if not project:
            sentence = "Bucket is a requester pays bucket but no user project provided."
            raise RefusedError(400, "required", sentence)
        require(grants, "serviceusage.services.use", project_of(grants, project))


def _missing(store: ObjectStore, *buckets: str) -> RefusedError | None:
    """404 for the first bucket that does not exist, even to callers without a permission: all names are public."""
    missing = [name for name in buckets if name and store.catalog.find_bucket(name) is None]
    return no_such_bucket(missing[0]) if missing else None


def _denial(denied: DeniedError) -> RefusedError:
    permission, message = denied.permission, denial(denied.permission)
    is_anonymous = denied.principal.kind == "anonymous"
    if permission in _ON_PROJECT:
        on = "project"
    else:
        is_on_bucket = ".buckets." in permission or permission.endswith(".list")
        on = "Storage bucket" if is_on_bucket else "Storage object"
    if permission:
        who = "Anonymous caller" if is_anonymous else denied.principal.email
        message = f"{who} does not have {permission} access to the Google Cloud {on}. {message}"
    if is_anonymous:
        return RefusedError(401, "required", message, xml_code="AccessDenied", headers=CHALLENGE)
    return RefusedError(403, "forbidden", message)
