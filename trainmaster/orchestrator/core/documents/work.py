"""How much work one document may cost, counted in its values: every machine decides alike, whatever its speed.

A reader refuses a document of more than MAX_VALUES values. A check that repeats, for fallbacks and for the conditions of
a rule, takes its work from one budget of MAX_WORK units, which a rule shares with its template.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from trainmaster.orchestrator.core.documents.faults import Fault

MAX_VALUES = 10_000
"""Keys, values, lists and mappings of one document. Vertex AI allows 1,000 values of a discrete parameter, 100 variables
and 100 packages, so honest requests hold a few hundred, and large tunings a few thousand:
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec#DiscreteValueSpec"""
MAX_KEY_CHARS = 1000
MAX_WORK = 30_000
"""Checking this many units takes up to about 0.3 s of one processor."""
CHARS_PER_UNIT = 32
_PLACEHOLDER_BEGINS = "${"


@dataclass(kw_only=True)
class Work:
    """The budget of one document, or of a rule and its template together; `spent` counts units."""

    most: int = MAX_WORK
    spent: int = 0

    def take(self, units: int) -> bool:
        """Whether the budget has this many units left. They are taken in both cases, so that all later work is refused."""
        self.spent += units
        return not self.is_spent

    @property
    def is_spent(self) -> bool:
        return self.spent > self.most

    def refusal(self, found: str) -> Fault:
        """Why the document is refused once the budget is spent; `found` says on what."""
        return Fault(
            path="$",
            problem="checking this document takes too much work",
            found=found,
            allowed=f"at most {self.most} units, in a rule for all of its conditions together",
            repair="shorten lists and texts, or use fewer fallbacks, placeholders or conditions",
        )


def units(value: object) -> int:
    """The work of one check of the value: one unit for each value, key and placeholder, and for each 32 characters."""
    return sum(map(_unit, _iter_values(value)))


def has_too_many_values(value: object, most: int = MAX_VALUES) -> bool:
    return next(islice(_iter_values(value), most, None), _END) is not _END


_END = object()


def _unit(value: object) -> int:
    if not isinstance(value, str):
        return 1
    return 1 + len(value) // CHARS_PER_UNIT + value.count(_PLACEHOLDER_BEGINS)


def _iter_values(value: object) -> Iterator[object]:
    """The value and everything in it, keys included, in no particular order; it does not recurse."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, dict):
            waiting += each
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
