"""Who has which role on what: the deployment's grants, less what a test has taken away."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

_FIELDS = {"grants": ("member", "role", "resource"), "permissions": ("permission", "resource")}
"""What can be taken away, with the fields that identify it."""


class RevokeError(ValueError):
    """The document does not say what to take away; the message has every fault."""


@dataclass(frozen=True, kw_only=True)
class Grant:
    """`member` has `role` on every resource that matches the pattern `resource`.

    With `folder`, the resource is a bucket's managed folder: the objects whose names begin with it.
    """

    member: str
    role: str
    resource: str
    folder: str = ""


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
    ) -> None:
        """`roles` has the permissions of each granted role, as far as they are known."""
        self.project = project
        self.project_number = project_number
        self._granted = tuple(grants)
        self._roles = roles or {}
        self._taken: dict[str, list[dict[str, str]]] = {key: [] for key in _FIELDS}

    @property
    def granted(self) -> tuple[Grant, ...]:
        """Every grant, whatever a test has taken away."""
        return self._granted

    def permitted(self, member: str, permissions: Sequence[str], resource: str) -> list[str]:
        """The permissions that `member` (empty: the owner) has on the resource, in the given order."""
        if not member:
            return [
                each
                for each in permissions
                if not self._is_taken("permissions", {"permission": each, "resource": resource})
            ]
        held: set[str] = set()
        for grant in self._live():
            if grant.member == member and not grant.folder and self._reaches(grant, resource):
                held |= self._roles.get(grant.role, frozenset())
        return [each for each in permissions if each in held]

    def policy(self, resource: str) -> dict[str, object]:
        """The resource's policy, without inherited grants."""
        bindings: dict[str, list[str]] = {}
        for grant in self._live():
            if not grant.folder and fnmatchcase(resource, grant.resource):
                bindings.setdefault(grant.role, []).append(grant.member)
        found = [
            {"role": role, "members": sorted(set(members))} for role, members in sorted(bindings.items())
        ]
        return {"version": 1, "etag": "ACAB", **({"bindings": found} if found else {})}

    def knows(self, member: str) -> bool:
        """Whether the account exists, which here means that it was ever granted a role."""
        return any(grant.member == member for grant in self._granted)

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

    def restore(self) -> None:
        for rows in self._taken.values():
            rows.clear()

    def taken(self) -> dict[str, object]:
        """What `take` has taken away since the last `restore`."""
        return dict(self._taken)

    def _live(self) -> list[Grant]:
        return [grant for grant in self._granted if not self._is_taken("grants", vars(grant))]

    def _reaches(self, grant: Grant, resource: str) -> bool:
        return fnmatchcase(resource, grant.resource) or grant.resource == f"projects/{self.project}"

    def _is_taken(self, key: str, found: Mapping[str, str]) -> bool:
        return any(
            all(fnmatchcase(found[field], pattern) for field, pattern in row.items())
            for row in self._taken[key]
        )


def _faults(key: str, rows: object) -> Iterator[str]:
    if not isinstance(rows, list):
        yield f"{key}: expected a list, found {rows!r}"
        return
    for number, row in enumerate(rows):
        if not isinstance(row, dict) or set(row) != set(_FIELDS[key]) or not all(map(_is_text, row.values())):
            yield f"{key}[{number}]: expected strings {', '.join(_FIELDS[key])}, found {row!r}"


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)
