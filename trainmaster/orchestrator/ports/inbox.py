"""What users dropped."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class DroppedRule:
    """A rule's file as it lies in the inbox."""

    name: str
    generation: int
    size_bytes: int


class Inbox(Protocol):
    """What users dropped."""

    def read(self, bucket: str, name: str, generation: int) -> bytes:
        """The content of that very generation.

        Raises:
            ObjectGone: it was deleted or written over.
        """
        ...

    def latest(self, bucket: str, name: str) -> tuple[bytes, int]:
        """The content as it is now, and its generation.

        Raises:
            ObjectGone: there is none.
        """
        ...

    def rules(self) -> Sequence[DroppedRule]:
        """Every file that the inbox takes for a rule."""
        ...
