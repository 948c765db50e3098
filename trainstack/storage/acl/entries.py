"""Entries of access control lists: the role of each entity, the predefined lists, and the members of a policy.

Sources: https://cloud.google.com/storage/docs/access-control/lists and …/docs/json_api/v1/objectAccessControls
"""

import re
from collections.abc import Mapping
from typing import TypeAlias

from trainstack.project import project_number
from trainstack.storage.objects.errors import invalid

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
ROLES = {"bucket": ("READER", "WRITER", "OWNER"), "object": ("READER", "OWNER")}
_ENTITY = re.compile(
    r"all(?:Authenticated)?Users|(?:user|group)-[^\s@]+@[^\s@]+|domain-[\w.-]+|project-(?:owners|editors|viewers)-[\w:.-]+"
)


def predefined(name: str, project: str, of: str) -> Entries:
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
        if not _ENTITY.fullmatch(str(entity)) or role not in ROLES[of]:
            expected = f"an entity such as user-EMAIL, and one of the roles {', '.join(ROLES[of])}"
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
