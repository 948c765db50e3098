"""What stops an examination before it begins. The trainer has its own: the image holds nothing of this package."""

from collections.abc import Iterable
from difflib import get_close_matches


class Unusable(Exception):
    """The program cannot be examined as asked; trying again unchanged cannot help.

    `faults` holds every fault found, each a sentence with what was found and the likely repair.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(self.faults))


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` with the known word most like `word`, or nothing when none is near."""
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {found[0]!r}?" if found else ""
