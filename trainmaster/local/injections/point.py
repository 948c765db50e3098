"""One call or message as a fault sees it, and the decision whether the fault strikes. Values in, values out."""

import random
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trainmaster.local.injections.fault import EVERY_KIND, Fault, Kind


@dataclass(frozen=True, kw_only=True)
class Call:
    """`at` is the place (`storage.objects.insert`); `subjects` are the names that `match` may name.

    The first subject stands for the call in accounts. `kinds` are those that make sense here and now.
    """

    at: str
    subjects: tuple[str, ...] = ()
    kinds: frozenset[Kind] = EVERY_KIND

    @property
    def shown(self) -> str:
        return f"{self.at} {self.subjects[0]}" if self.subjects else self.at


def fits(fault: Fault, call: Call) -> bool:
    """Whether the fault is asked at this call."""
    return (
        fault.kind in call.kinds
        and fnmatchcase(call.at, fault.at)
        and (fault.match == "*" or any(fnmatchcase(subject, fault.match) for subject in call.subjects))
    )


def strikes(fault: Fault, *, seed: int, asked: int, struck: int) -> bool:
    """Whether the fault strikes, having been asked `asked` times before and having struck `struck` of them.

    The same seed, name and number always decide alike, whatever other faults there are and whatever was between.
    """
    if asked < fault.skip or (fault.times is not None and struck >= fault.times):
        return False
    if fault.probability >= 1:
        return True
    roll = random.Random(f"{seed}/{fault.name}/{asked}").random()  # noqa: S311  # to be repeated, not to be secret
    return roll < fault.probability
