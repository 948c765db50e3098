"""The access control lists of stored buckets and objects, and what they let a caller do.

A bucket's list is the part of its IAM policy whose roles are `legacyBucket…`; an object's is stored once it differs from
the initial default, `projectPrivate`. Source: https://cloud.google.com/storage/docs/access-control/iam#acls
"""

from collections.abc import Iterable, Mapping
from typing import Any

from trainstack.iam.principals import Principal
from trainstack.project import project_number
from trainstack.storage.acl.entries import PUBLIC, ROLES, Entries, entity_of, member_of, predefined
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.records import BucketRecord, ObjectRecord

_BUCKET_ROLES = {role: f"roles/storage.legacyBucket{role.title()}" for role in ROLES["bucket"]}
_OF_OWNERS = frozenset(
    f"storage.objects.{verb}" for verb in ("get", "getIamPolicy", "setIamPolicy", "update")
)


def is_uniform(bucket: BucketRecord) -> bool:
    """Whether the policy alone decides about objects; so it is for a bucket that does not say."""
    return bucket.setting("iamConfiguration", "uniformBucketLevelAccess", "enabled") is not False


def hidden_members(bucket: BucketRecord) -> frozenset[str]:
    """Those to whom the bucket's public access prevention grants nothing."""
    is_prevented = bucket.setting("iamConfiguration", "publicAccessPrevention") == "enforced"
    return PUBLIC if is_prevented else frozenset()


def check_public(bucket: BucketRecord, members: Iterable[str]) -> None:
    """Raises `RefusedError` (412) for members or entities that the bucket's public access prevention forbids."""
    if not hidden_members(bucket).isdisjoint(members):
        message = "The member bindings allUsers and allAuthenticatedUsers are not allowed since public access prevention is enforced."
        raise RefusedError(412, "conditionNotMet", message)


def bucket_acl(bucket: BucketRecord) -> Entries:
    """The bucket's list; that of a bucket whose policy was never set gives the project's teams their roles."""
    if bucket.bindings is None:
        return predefined("projectPrivate", bucket.project, "bucket")
    members = {
        role: [who for binding in bucket.bindings if binding["role"] == name for who in binding["members"]]
        for role, name in _BUCKET_ROLES.items()
    }
    return {entity_of(who): role for role in members for who in members[role]}


def bindings_with(
    policy: Iterable[Mapping[str, Any]], entries: Entries, project: str
) -> list[Mapping[str, Any]]:
    """A bucket's policy with these entries in place of those that it has. The project's owners stay owners."""
    owned = {**entries, f"project-owners-{project_number(project)}": "OWNER"}
    bindings = [binding for binding in policy if binding["role"] not in _BUCKET_ROLES.values()]
    for role, name in _BUCKET_ROLES.items():
        if members := [member_of(entity, project) for entity in owned if owned[entity] == role]:
            bindings.append({"role": name, "members": members})
    return bindings


def default_acl(bucket: BucketRecord) -> Entries:
    """The list of the bucket's new objects, without their owner."""
    initial = predefined("projectPrivate", bucket.project, "object")
    return initial if bucket.default_acl is None else bucket.default_acl


def owner_of(account: str, bucket: BucketRecord) -> str:
    """The owner of what this account has uploaded; the project's owners for the local user."""
    return f"user-{account}" if account else f"project-owners-{project_number(bucket.project)}"


def object_acl(stored: ObjectRecord, bucket: BucketRecord) -> Entries:
    initial = predefined("projectPrivate", bucket.project, "object")
    return stored.acl or {**initial, owner_of(stored.owner, bucket): "OWNER"}


def allows(stored: ObjectRecord, bucket: BucketRecord, caller: Principal, permission: str) -> bool:
    """Whether the object's list gives the caller the permission.

    Every account counts as an editor, as in policies, but only in a list that was set: otherwise a bucket's policy could
    not keep an account from its objects.
    """
    entities = {"allUsers"}
    if caller.email:
        entities |= {"allAuthenticatedUsers", f"user-{caller.email}"}
    if caller.email and stored.acl:
        entities.add(f"project-editors-{project_number(bucket.project)}")
    acl = object_acl(stored, bucket)
    roles = {acl.get(entity) for entity in entities - hidden_members(bucket)}
    return (permission == "storage.objects.get" and "READER" in roles) or (
        permission in _OF_OWNERS and "OWNER" in roles
    )
