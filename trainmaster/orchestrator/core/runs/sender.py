"""Who gave a request or an order, and from which commit: what the sender's metadata say, each value bounded.

Google Cloud tells a function neither. So all of it is the sender's word, but for what the service itself decided: the
custom metadata of an uploaded object, or the attributes of a message, which anyone may set who may write there.
"""

from dataclasses import dataclass
from enum import StrEnum

VALUE_MAX_CHARS = 100
ACCOUNT_KEY, NAME_KEY = "trainmaster-account", "trainmaster-by"
FORCED_KEY, FORCED_MAX_CHARS = "trainmaster-forced", 300
"""An attribute of a message has at most 1,024 bytes: https://cloud.google.com/pubsub/quotas (read 2026-11)."""
COMMIT_KEY, BRANCH_KEY, DIRTY_KEY = "trainmaster-commit", "trainmaster-branch", "trainmaster-dirty"


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
