"""A document that is read whole: everything wrong with it is said at once, each thing with its path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Reading:
    """A JSON or YAML value being read; what is wrong with it goes to `wrong`."""

    wrong: list[str] = field(default_factory=list)

    def expect(self, good: bool, path: str, expected: str, found: object) -> bool:  # the claim itself
        """Whether the value is `good`; else it is noted that `expected` stands there and what was found."""
        if not good:
            self.wrong.append(f"{path}: expected {expected}, found {found!r:.80}.")
        return good

    def mapping(self, value: object, path: str, *, known: Sequence[str] = ()) -> Mapping[str, object]:
        """The mapping, or an empty one; with `known` fields no others may be there."""
        named = isinstance(value, dict) and all(isinstance(key, str) for key in value)
        if not self.expect(named, path, "a mapping with names as keys", value) or not isinstance(value, dict):
            return {}
        self.wrong += [
            f"{path}.{key}: there is no such field; known are {', '.join(known)}."
            for key in value
            if known and key not in known
        ]
        return value

    def count(self, value: object, path: str) -> int:
        """A whole number from 0 on."""
        self.expect(is_count(value), path, "a whole number from 0 on", value)
        return value if isinstance(value, int) else 0


def is_count(value: object) -> bool:
    """Whether this is a whole number from 0 on; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number_in(value: object, low: float, high: float) -> bool:
    """Whether this is a number from `low` to `high`; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
