"""Faults that a user can repair: flags, environment and data that do not fit."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

_OF_DATA = re.compile(r"Error in user-defined function passed to \S+ transformation with iterator: \S+: ")
_AROUND = re.compile(rf"\{{\{{.*?\}}\}}|\[\[.*?\]\]|\[Op:.*|{_OF_DATA.pattern}")
_RAISED = re.compile(r"\w+Error: ")
_OF_NO_USE = ("Graph execution error", "Detected at node", "<stack traces", "in user code", "File ")


class Unusable(Exception):
    """Training cannot start with what was given; trying again unchanged cannot help.

    `faults` holds every fault found, each a sentence with what was found and the likely repair.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(self.faults))


class Diverged(Exception):
    """The loss or a weight is not a finite number: more steps would only spoil the checkpoint."""


@contextmanager
def collect_faults(faults: list[str]) -> Iterator[None]:
    """Adds the faults of an Unusable that the block raises to `faults`, so that others can be found too."""
    try:
        yield
    except Unusable as unusable:
        faults += unusable.faults


def reason_of(error: Exception) -> str:
    """What an error of TensorFlow or Keras says, without the places in the code around it."""
    lines = [_AROUND.sub("", line).strip() for line in str(error).splitlines()]
    starts = [number for number, line in enumerate(lines) if _RAISED.match(line)]
    if starts:  # AutoGraph shows the code first
        lines = [_RAISED.sub("", lines[starts[-1]])]
    reason = next((line for line in lines if line and not line.startswith(_OF_NO_USE)), type(error).__name__)
    return reason.rstrip(".")


def is_of_data(error: Exception) -> bool:
    """Whether an error of TensorFlow comes from a function of a tf.data.Dataset, and not from the model."""
    return bool(_OF_DATA.search(str(error)))


def suggestion_for(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` with the known word most like `word`, or nothing when none is near."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""
