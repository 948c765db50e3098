"""The roles and permissions of a bucket's IAM policy.

Source: https://cloud.google.com/storage/docs/access-control/iam-roles and …/iam-permissions
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import filter as matching
from pathlib import Path
from typing import Any

from trainstack.iam.service import BUCKETS, Grant

Bindings = Sequence[Mapping[str, Any]]

MEMBER = re.compile(r"(?:user|serviceAccount):[^\s:]+@[^\s:]+|project(?:Owner|Editor|Viewer):[^\s:]+")
"""What can be granted a role here: there are no groups, and no calls without a principal."""


_TABLE: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("roles.toml").read_text())
PERMISSIONS = frozenset(f"storage.{name}" for name in _TABLE["permissions"])
"""Those that a bucket's policy can give."""
ROLES: Mapping[str, frozenset[str]] = {
    f"roles/storage.{role}": frozenset(
        name for pattern in patterns for name in matching(PERMISSIONS, f"storage.{pattern}")
    )
    for role, patterns in _TABLE["roles"].items()
}
"""The permissions of each role that can be granted on a bucket."""


def grants_of(bucket: str, bindings: Bindings) -> Iterator[Grant]:
    """The bindings as grants on the bucket."""
    for binding in bindings:
        for member in binding["members"]:
            yield Grant(member=member, role=binding["role"], resource=BUCKETS + bucket)
