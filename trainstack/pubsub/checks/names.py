"""Resource names: which are allowed, and their parts.

Source: https://cloud.google.com/pubsub/docs/create-topic (resource name guidelines).
"""

import re
from typing import Literal, TypeAlias

from trainstack.errors import InvalidArgumentError

Kind: TypeAlias = Literal["topics", "subscriptions", "snapshots", "schemas"]
DELETED_TOPIC = "_deleted-topic_"
"""The topic of a subscription whose topic was deleted."""

DELETED_SCHEMA = "_deleted-schema_"
"""Likewise, the schema of a topic."""

_ID = re.compile(r"(?!goog)[A-Za-z][A-Za-z0-9\-._~+%]{2,254}")
_PROJECT = re.compile(r"projects/[^/\s]+")


def check_name(name: str, *, kind: Kind) -> None:
    """Raises `InvalidArgumentError` for a name of another form, or with a forbidden id."""
    project, found_kind, resource_id = ["", "", *name.rsplit("/", 2)][-3:]
    if not _PROJECT.fullmatch(project) or found_kind != kind or not _ID.fullmatch(resource_id):
        raise InvalidArgumentError(
            f"Invalid [{kind}] name: (name={name!r}). It must be projects/PROJECT/{kind}/ID, where ID has "
            "3 to 255 characters, begins with a letter, has only letters, digits and - . _ ~ + %, "
            "and does not begin with 'goog'."
        )


def check_project(name: str) -> None:
    """Raises `InvalidArgumentError` for anything but `projects/PROJECT`."""
    if not _PROJECT.fullmatch(name):
        raise InvalidArgumentError(f"Invalid project name: (name={name!r}). It must be projects/PROJECT.")


def project_of(name: str) -> str:
    """The project id in any resource name."""
    return name.split("/", 2)[1]


def id_of(name: str) -> str:
    """The last path component of a resource name."""
    return name.rsplit("/", 1)[-1]
