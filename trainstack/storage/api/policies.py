"""The IAM methods of buckets and managed folders.

Source: https://cloud.google.com/storage/docs/json_api/v1/buckets/setIamPolicy
"""

from dataclasses import replace
from typing import Any

from starlette.responses import Response

from trainstack.iam.principals import caller
from trainstack.iam.service import BUCKETS
from trainstack.storage.acl import check_public
from trainstack.storage.api.call import Call, Json, change_bucket, json_answer
from trainstack.storage.buckets.resource import MEMBER, PERMISSIONS, ROLES, Bindings, bucket_etag
from trainstack.storage.buckets.settings import check_values
from trainstack.storage.objects.errors import RefusedError, condition_not_met, invalid
from trainstack.storage.objects.records import BucketRecord


async def get_iam_policy(call: Call) -> Response:
    """The policy of the bucket, or of the managed folder in it."""
    resource, folder = _iam_name(call)
    bucket = call.store.bucket(call.path["bucket"])
    granted: Json = {"version": 1, "bindings": list(bucket.bindings or ())}
    if call.service.grants:
        with_conditions = call.query.get("optionsRequestedPolicyVersion") == "3"
        granted = call.service.grants.policy(resource, folder, with_conditions=with_conditions)
    name = f"{resource}/managedFolders/{folder}" if folder else resource
    etag = bucket_etag(bucket)
    return json_answer(
        {"bindings": [], **granted, "kind": "storage#policy", "resourceId": name, "etag": etag}
    )


async def set_iam_policy(call: Call) -> Response:
    """Replace the bucket's policy, whose grants apply at once. Roles on its folders and single objects stay."""
    body: dict[str, Any] = await call.json("Policy")
    check_values("Policy", body)
    bindings: Bindings = body.get("bindings", [])
    known = {*ROLES, *(call.service.grants.roles if call.service.grants else ())}
    if unknown := {binding["role"] for binding in bindings} - known:
        raise invalid(f"Role {min(unknown)} is not supported for this resource.")
    members = {member for binding in bindings for member in binding["members"]}
    if others := [member for member in members if not MEMBER.fullmatch(member)]:
        raise invalid(f"Invalid member of a policy: {min(others)!r}.")

    def change(bucket: BucketRecord, _now_us: int) -> BucketRecord:
        if body.get("etag", bucket_etag(bucket)) != bucket_etag(bucket):
            raise condition_not_met("the policy has changed since its etag was read")
        check_public(bucket, members)
        return replace(bucket, bindings=bindings)

    change_bucket(call, change)
    return await get_iam_policy(call)


async def test_permissions(call: Call) -> Response:
    """All permissions, unless a stack has grants."""
    resource, folder = _iam_name(call)
    asked = call.request.query_params.getlist("permissions")
    if unknown := set(asked) - PERMISSIONS:
        raise invalid(f"Invalid permission: {min(unknown)!r}.")
    if call.service.grants:
        asked = call.service.grants.permitted(caller().member, asked, resource, folder or None)
    return json_answer({"kind": "storage#testIamPermissionsResponse", "permissions": asked})


async def service_account(call: Call) -> Response:
    """The account of the project's service agent, which clients grant roles so that it publishes notifications.

    Its number is the project's, or 1 without a stack.
    """
    grants, project = call.service.grants, call.path["project"]
    if grants and project not in (grants.project, grants.project_number):
        raise RefusedError(404, "notFound", f"The project {project!r} does not exist.")
    agent = f"service-{grants.project_number if grants else 1}@gs-project-accounts.iam.gserviceaccount.com"
    return json_answer({"kind": "storage#serviceAccount", "email_address": agent})


def _iam_name(call: Call) -> tuple[str, str]:
    """The bucket, and the managed folder in it, or an empty string.

    Raises:
        RefusedError: 404, the bucket or the folder does not exist.
    """
    bucket = BUCKETS + call.store.bucket(call.path["bucket"]).name
    folder = call.path.get("folder", "")
    if folder and not (call.service.grants and call.service.grants.has_folder(bucket, folder)):
        raise RefusedError(404, "notFound", "The specified managed folder does not exist.")
    return bucket, folder
