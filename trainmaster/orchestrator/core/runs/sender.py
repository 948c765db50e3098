"""Who gave a request or an order, and from which commit: what the sender's metadata say, each value bounded.

Google Cloud tells a function neither. So all of it is the sender's word, but for what the service itself decided: the
custom metadata of an uploaded object, or the attributes of a message, which anyone may set who may write there.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

VALUE_MAX_CHARS = 100
ACCOUNT_KEY, NAME_KEY = "trainmaster-account", "trainmaster-by"
COMMIT_KEY, BRANCH_KEY, DIRTY_KEY = "trainmaster-commit", "trainmaster-branch", "trainmaster-dirty"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


class Surety(StrEnum):
    """The service saw it, such as the rule that fired; the sender says that it has these credentials; or claims the name."""

    EVENT = "event"
    CREDENTIALS = "credentials"
    CLAIM = "claim"


@dataclass(frozen=True, kw_only=True)
class Sender:
    """Who gave a request or an order."""

    name: str
    by: Surety


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The git commit of the folder that the request or its script comes from."""

    id: str
    branch: str | None = None
    dirty: bool | None = None
    """Whether files of the folder differ from the commit; None if that is not known."""


def sender_from(metadata: Mapping[str, object]) -> Sender | None:
    """The sender that the metadata name; None if they name none."""
    for key, by in ((ACCOUNT_KEY, Surety.CREDENTIALS), (NAME_KEY, Surety.CLAIM)):
        if name := _text(metadata.get(key)):
            return Sender(name=name, by=by)
    return None


def commit_from(metadata: Mapping[str, object]) -> Commit | None:
    """The commit that the metadata name; None if they name none, or what no commit is called."""
    commit_id = _text(metadata.get(COMMIT_KEY))
    if not _COMMIT.fullmatch(commit_id):
        return None
    branch, dirty = _text(metadata.get(BRANCH_KEY)), _text(metadata.get(DIRTY_KEY))
    return Commit(id=commit_id, branch=branch or None, dirty={"true": True, "false": False}.get(dirty))


def _text(value: object) -> str:
    """One printable line of at most VALUE_MAX_CHARS; empty for what is no text."""
    text = value if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in text[:VALUE_MAX_CHARS]).strip()
