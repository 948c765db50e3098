"""What a user can repair: flags, environment and data that do not fit."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class Unusable(Exception):
    """Training cannot start with what was given; trying again unchanged cannot help.

    `faults` holds every fault found, each a sentence with what was found and the likely repair.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(self.faults))


@contextmanager
def collected(faults: list[str]) -> Iterator[None]:
    """Adds the faults of an Unusable that the block raises to `faults`, so that others can be found too."""
    try:
        yield
    except Unusable as unusable:
        faults += unusable.faults


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` with the known word most like `word`, or nothing when none is near."""
    found = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {found[0]!r}?" if found else ""
