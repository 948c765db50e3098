"""The roles of each account on each resource: the deployment's grants, less what a test has taken away."""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import filter as matching
from fnmatch import fnmatchcase, translate

from trainstack.iam.principals import EVERYONE

_FIELDS = {"grants": ("member", "role", "resource"), "permissions": ("permission", "resource")}
"""What can be taken away, with the fields that identify it."""
PATTERN_MAX_CHARS = 1024
"""Of one of these fields. Matching a pattern takes time that grows with the square of its length."""
BUCKETS = "projects/_/buckets/"
USERS_BUCKET = {
    "roles/storage.legacyBucketReader": frozenset({"storage.buckets.get", "storage.objects.list"}),
    "roles/storage.objectUser": frozenset({
        "storage.managedFolders.list", "storage.objects.create", "storage.objects.delete",
        "storage.objects.get", "storage.objects.list", "storage.objects.move", "storage.objects.restore",
        "storage.objects.update",
    }),
}  # fmt: skip
"""The roles of every account on a bucket that the deployment did not create: the local user made it for programs to use.

In the cloud, its creator grants them: https://cloud.google.com/storage/docs/access-control/iam-roles
"""


class RevokeError(ValueError):
    """The document does not say what to take away; the message has every fault."""


@dataclass(frozen=True, kw_only=True)
class Grant:
    """`member` has `role` on every resource that matches the pattern `resource`.

    With `folder`, the resource is a bucket's managed folder: the objects whose names begin with it. With `object`, it
    is that object alone.
    """

    member: str
    role: str
    resource: str
    folder: str = ""
    object: str = ""

    @property
    def is_partial(self) -> bool:
        """Whether it is on a part of the bucket, and so in no policy of the bucket's own."""
        return bool(self.folder or self.object)


@dataclass(frozen=True, kw_only=True)
class _Reach:
    """What a grant reaches; its resource is a name, or a pattern if `pattern` is set."""

    grant: Grant
    pattern: re.Pattern[str] | None

    def covers(self, resource: str, object_name: str | None) -> bool:
        grant = self.grant
        if grant.folder and (object_name is None or not object_name.startswith(grant.folder)):
            return False
        if grant.object and object_name != grant.object:
            return False
        return self.pattern.match(resource) is not None if self.pattern else grant.resource == resource


def roles_from(
    service: str, permissions: Collection[str], patterns: Mapping[str, Iterable[str]]
) -> Mapping[str, frozenset[str]]:
    """A service's roles: `roles/SERVICE.NAME` has the permissions that match one of its patterns, `SERVICE.PATTERN`."""
    return {
        f"roles/{service}.{role}": frozenset(
            name for pattern in wanted for name in matching(permissions, f"{service}.{pattern}")
        )
        for role, wanted in patterns.items()
    }


class Grants:
    """Decides permissions. A caller without a token owns the project and may do everything.

    A project's grants are inherited by all resources in it, as in the cloud:
    https://cloud.google.com/iam/docs/resource-hierarchy-access-control
    """

    def __init__(
        self,
        *,
        project: str,
        project_number: str,
        grants: Iterable[Grant] = (),
        roles: Mapping[str, frozenset[str]] | None = None,
        buckets: Collection[str] | None = None,
        enforced: bool = True,
    ) -> None:
        """`roles` has the permissions of each granted role, as far as they are known.

        `buckets` are the deployment's own; every account may use any other one, as `USERS_BUCKET` says. None: all are.
        Without `enforced`, permissions are reported, and no call is refused for lack of one.
        """
        self.project = project
        self.project_number = project_number
        self.enforced = enforced
        self.granted = tuple(grants)
        """Every grant, whatever a test has taken away."""
        self.roles = roles or {}
        """The permissions of each role, as far as they are known."""
        self._buckets = None if buckets is None else frozenset(BUCKETS + name for name in buckets)
        self._every_account = (f"projectEditor:{project}", EVERYONE, "allAuthenticatedUsers")
        self._policies: dict[str, tuple[Grant, ...]] = {}
        self._taken: dict[str, list[dict[str, str]]] = {key: [] for key in _FIELDS}
        self._reaches = self._by_permission()

    def allows(self, member: str, permission: str, resource: str, object_name: str | None = None) -> bool:
        """Whether the account has the permission on the resource, and on the object of that name or prefix in it.

        One lookup in memory: every call of every service asks.
        """
        is_public = member == EVERYONE
        for name in (member, *(() if is_public else self._every_account)):
            reaches = self._reaches.get((name, permission), ())
            if any(reach.covers(resource, object_name) for reach in reaches):
                return True
        if is_public or not self._is_users_bucket(resource):
            return False
        return any(permission in held for held in USERS_BUCKET.values())

    def set_policy(
        self,
        resource: str,
        bindings: Iterable[tuple[str, Iterable[str]]] | None,
        roles: Mapping[str, frozenset[str]],
    ) -> None:
        """Replace what is granted on the whole of this resource by roles with their members; None restores it.

        `roles` has the permissions of those that the service knows. Every account of the project counts as one of its
        editors.
        """
        self.roles = {**roles, **self.roles}
        if bindings is None:
            self._policies.pop(resource, None)
        else:
            self._policies[resource] = tuple(
                Grant(member=member, role=role, resource=resource)
                for role, members in bindings
                for member in members
            )
        self._reaches = self._by_permission()

    def permitted(
        self, member: str, permissions: Sequence[str], resource: str, folder: str | None = None
    ) -> list[str]:
        """The permissions that `member` (empty: the owner) has on the resource, or the folder in it, in the given order."""
        if not member:
            return [
                permission
                for permission in permissions
                if not self._is_taken("permissions", {"permission": permission, "resource": resource})
            ]
        return [permission for permission in permissions if self.allows(member, permission, resource, folder)]

    def has_folder(self, bucket: str, folder: str) -> bool:
        """Whether the deployment has created this managed folder: one on which it grants a role."""
        return any(
            grant.folder == folder and grant.resource == bucket for grant in self.granted if grant.folder
        )

    def policy(self, resource: str, folder: str = "", *, with_conditions: bool = False) -> dict[str, object]:
        """The policy of the resource, or of the managed folder in it, without inherited grants.

        `with_conditions`: also the roles on single objects of a bucket, which are bound under a condition.
        """
        bindings: dict[str, list[str]] = {}
        conditional: list[dict[str, object]] = []
        for grant in self._live():
            if grant.folder != folder or not fnmatchcase(resource, grant.resource):
                continue
            if not grant.object:
                bindings.setdefault(grant.role, []).append(grant.member)
            elif with_conditions:
                expression = f"resource.name == '{resource}/objects/{grant.object}'"
                condition = {"title": f"only {grant.object}", "expression": expression}
                conditional.append({"role": grant.role, "members": [grant.member], "condition": condition})
        if self._is_users_bucket(resource):
            for role in USERS_BUCKET:
                bindings.setdefault(role, []).append(f"projectEditor:{self.project}")
        policy_bindings: list[dict[str, object]] = [
            {"role": role, "members": sorted(set(members))} for role, members in sorted(bindings.items())
        ]
        policy_bindings += conditional
        version = 3 if conditional else 1
        return {
            "version": version,
            "etag": "ACAB",
            **({"bindings": policy_bindings} if policy_bindings else {}),
        }

    def knows(self, member: str) -> bool:
        """Whether the account exists, which here means that it was ever granted a role."""
        return any(grant.member == member for grant in self.granted)

    def accounts(self) -> list[str]:
        """The emails of the project's service accounts: those that were ever granted a role, but not Google's agents."""
        own = (f"@{self.project}.iam.gserviceaccount.com", "@developer.gserviceaccount.com")
        members = {grant.member.removeprefix("serviceAccount:") for grant in self.granted}
        return sorted(member for member in members if member.endswith(own))

    def has_permission(self, permission: str) -> bool:
        """Whether a role has it."""
        return any(permission in permissions for permissions in self.roles.values())

    def take(self, document: object) -> None:
        """Take away the grants and permissions that a JSON document names, until `restore`.

        `grants` is a list of `{member, role, resource}`; `permissions` of `{permission, resource}`, which the
        project's owner then lacks. All fields are patterns with `*`.

        Raises:
            BadTakingError: with every fault.
        """
        if not isinstance(document, dict) or not document or not set(document) <= set(_FIELDS):
            raise RevokeError(f"expected grants, permissions or both, found {document!r}")
        if faults := [fault for key, rows in document.items() for fault in _faults(key, rows)]:
            raise RevokeError("; ".join(faults))
        for key, rows in document.items():
            self._taken[key] += rows
        self._reaches = self._by_permission()

    def restore(self) -> None:
        """Give back all that was taken away."""
        for rows in self._taken.values():
            rows.clear()
        self._reaches = self._by_permission()

    def taken_grants(self) -> dict[str, object]:
        """What `take` has taken away since the last `restore`."""
        return dict(self._taken)

    def _live(self) -> list[Grant]:
        kept = [g for g in self.granted if g.is_partial or g.resource not in self._policies]
        granted = itertools.chain(kept, *self._policies.values())
        return [grant for grant in granted if not self._is_taken("grants", vars(grant))]

    def _by_permission(self) -> Mapping[tuple[str, str], Sequence[_Reach]]:
        """What each account reaches with each permission."""
        reaches: dict[tuple[str, str], list[_Reach]] = {}
        for grant in self._live():
            reach = self._reach(grant)
            for permission in self.roles.get(grant.role, ()):
                reaches.setdefault((grant.member, permission), []).append(reach)
        return reaches

    def _reach(self, grant: Grant) -> _Reach:
        pattern: re.Pattern[str] | None = None
        if grant.resource == f"projects/{self.project}":  # inherited by all that it contains
            pattern = re.compile(f"projects/(?:{re.escape(self.project)}(?:/|$)|_/buckets/)")
        elif set(grant.resource) & set("*?["):
            pattern = re.compile(translate(grant.resource))
        return _Reach(grant=grant, pattern=pattern)

    def _is_users_bucket(self, resource: str) -> bool:
        if self._buckets is None or resource in self._policies:
            return False
        return resource.startswith(BUCKETS) and resource not in self._buckets

    def _is_taken(self, key: str, attempt: Mapping[str, str]) -> bool:
        return any(
            all(fnmatchcase(attempt[field], pattern) for field, pattern in row.items())
            for row in self._taken[key]
        )


def _faults(key: str, rows: object) -> Iterator[str]:
    if not isinstance(rows, list):
        yield f"{key}: expected a list, found {rows!r}"
        return
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != set(_FIELDS[key]) or not all(map(_is_text, row.values())):
            yield f"{key}[{number}]: expected strings {', '.join(_FIELDS[key])} of at most {PATTERN_MAX_CHARS} characters, found {row!r:.300}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= PATTERN_MAX_CHARS
