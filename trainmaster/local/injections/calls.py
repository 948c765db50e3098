"""One call or message as an injection sees it, and the decision whether the injection strikes. Values in, values out."""

import random
from dataclasses import dataclass
from fnmatch import fnmatchcase

from trainmaster.local.injections.injection import CALL_KINDS, Injection, Kind


@dataclass(frozen=True, kw_only=True)
class Call:
    """`at` is the place (`storage.objects.insert`); `subjects` are the names that `match` may name.

    The first subject stands for the call in accounts. `kinds` are those that make sense here.
    """

    at: str
    subjects: tuple[str, ...] = ()
    kinds: frozenset[Kind] = CALL_KINDS

    @property
    def shown(self) -> str:
        return f"{self.at} {self.subjects[0]}" if self.subjects else self.at


def fits(injection: Injection, call: Call) -> bool:
    """Whether the injection is asked at this call."""
    return (
        injection.kind in call.kinds
        and fnmatchcase(call.at, injection.at)
        and (
            injection.match == "*" or any(fnmatchcase(subject, injection.match) for subject in call.subjects)
        )
    )


def strikes(injection: Injection, *, seed: int, asked: int, struck: int) -> bool:
    """Whether the injection strikes, having been asked `asked` times before and having struck `struck` of them.

    The same seed, name and number always decide alike, whatever other injections there are and whatever was between.
    """
    if asked < injection.skip or (injection.times is not None and struck >= injection.times):
        return False
    if injection.probability >= 1:
        return True
    roll = random.Random(f"{seed}/{injection.name}/{asked}").random()  # noqa: S311  # to be repeated, not to be secret
    return roll < injection.probability
