"""Access control lists of buckets and objects, which count where uniform bucket-level access is off.

A bucket's list is the part of its IAM policy whose roles are `legacyBucket…`; an object's is stored once it differs from
the initial default, `projectPrivate`. Sources: https://cloud.google.com/storage/docs/access-control/lists, …/iam#acls and
…/docs/json_api/v1/objectAccessControls
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from trainstack.iam.principals import Principal
from trainstack.project import project_number
from trainstack.storage.objects.errors import RefusedError, invalid
from trainstack.storage.objects.records import BucketRecord, ObjectRecord

Entries: TypeAlias = Mapping[str, str]
"""The role of each entity, such as `user-a@b.c`."""

PUBLIC = frozenset(("allUsers", "allAuthenticatedUsers"))
_PREDEFINED: Mapping[str, Entries] = {
    "authenticatedRead": {"allAuthenticatedUsers": "READER"},
    "bucketOwnerFullControl": {"project-owners": "OWNER"},
    "bucketOwnerRead": {"project-owners": "READER"},
    "private": {},
    "projectPrivate": {"project-owners": "OWNER", "project-editors": "OWNER", "project-viewers": "READER"},
    "publicRead": {"allUsers": "READER"},
    "publicReadWrite": {"allUsers": "WRITER"},
}
_NOT_OF = {"bucket": ("bucketOwnerFullControl", "bucketOwnerRead"), "object": ("publicReadWrite",)}
_ROLES = {"bucket": ("READER", "WRITER", "OWNER"), "object": ("READER", "OWNER")}
_BUCKET_ROLES = {role: f"roles/storage.legacyBucket{role.title()}" for role in _ROLES["bucket"]}
_OF_OWNERS = {f"storage.objects.{verb}" for verb in ("get", "getIamPolicy", "setIamPolicy", "update")}
_ENTITY = re.compile(
    r"all(?:Authenticated)?Users|(?:user|group)-[^\s@]+@[^\s@]+|domain-[\w.-]+|project-(?:owners|editors|viewers)-[\w:.-]+"
)


def predefined_list(name: str, project: str, of: str) -> Entries:
    """The predefined list without its owner, for a `bucket` or an `object`.

    Raises:
        RefusedError: 400, there is no such list.
    """
    if name not in _PREDEFINED or name in _NOT_OF[of]:
        raise invalid(f"Invalid predefined ACL of a {of}: {name!r}.")
    number, entries = project_number(project), _PREDEFINED[name].items()
    return {f"{who}-{number}" if who.startswith("project") else who: role for who, role in entries}


def entries_from(listed: object, of: str) -> Entries:
    """The entries of a body's list for a `bucket` or an `object`. Raises `RefusedError` (400) for a row that is not one."""
    entries: dict[str, str] = {}
    for row in listed if isinstance(listed, list) else [listed]:
        entity, role = (row.get("entity"), row.get("role")) if isinstance(row, dict) else ("", "")
        if not _ENTITY.fullmatch(str(entity)) or role not in _ROLES[of]:
            expected = f"an entity such as user-EMAIL, and one of the roles {', '.join(_ROLES[of])}"
            raise invalid(f"Invalid entry of an access control list: {row!r:.200}; expected {expected}.")
        entries[str(entity)] = role
    return entries


def entry_json(entity: str, role: str, of: str, **place: str) -> dict[str, object]:
    """The entry's resource; `place` has the fields that say which list it is in."""
    kind, _, name = entity.partition("-")
    described: dict[str, object] = {}
    if kind == "project":
        team, _, number = name.partition("-")
        described["projectTeam"] = {"projectNumber": number, "team": team}
    elif name:
        described["domain" if kind == "domain" else "email"] = name
    kind = f"storage#{of}AccessControl"
    return {"kind": kind, **place, "entity": entity, "role": role, **described, "etag": "CAE="}


def member_of(entity: str, project: str) -> str:
    """The entity as a member of a policy in this project."""
    kind, _, name = entity.partition("-")
    if kind == "project":
        team, _, owner = name.partition("-")
        return f"project{team[:-1].title()}:{project if owner == project_number(project) else owner}"
    if kind == "user" and name.endswith("gserviceaccount.com"):
        return f"serviceAccount:{name}"
    return f"{kind}:{name}" if name else entity


def entity_of(member: str) -> str:
    """A member of a policy as an entity."""
    kind, _, name = member.partition(":")
    if kind.startswith("project"):
        return f"project-{kind.removeprefix('project').lower()}s-{project_number(name)}"
    return f"{kind.replace('serviceAccount', 'user')}-{name}" if name else member


def is_uniform(bucket: BucketRecord) -> bool:
    """Whether the policy alone decides about objects; so it is for a bucket that does not say."""
    return bucket.setting("iamConfiguration", "uniformBucketLevelAccess", "enabled") is not False


def hidden_members(bucket: BucketRecord) -> frozenset[str]:
    """Members that may have no access to the bucket: the public ones, if it enforces public access prevention."""
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
        return predefined_list("projectPrivate", bucket.project, "bucket")
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
    initial = predefined_list("projectPrivate", bucket.project, "object")
    return initial if bucket.default_acl is None else bucket.default_acl


def owner_of(account: str, bucket: BucketRecord) -> str:
    """The owner of what this account has uploaded; the project's owners for the local user."""
    return f"user-{account}" if account else f"project-owners-{project_number(bucket.project)}"


def object_acl(stored: ObjectRecord, bucket: BucketRecord) -> Entries:
    initial = predefined_list("projectPrivate", bucket.project, "object")
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
