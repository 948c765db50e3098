"""Reads a document and reports all its faults at once, each with its path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Reading:
    """A JSON or YAML value being read; its faults are collected in `wrong`."""

    wrong: list[str] = field(default_factory=list)

    def expect(self, good: bool, path: str, expected: str, found: object) -> bool:  # the claim itself
        """Whether the value is `good`; else records the fault with what was expected and found."""
        if not good:
            self.wrong.append(f"{path}: expected {expected}, found {found!r:.80}.")
        return good

    def mapping(self, value: object, path: str, *, known: Sequence[str] = ()) -> Mapping[str, object]:
        """The mapping, or an empty one; `known` lists the only allowed fields, if given."""
        named = isinstance(value, dict) and all(isinstance(key, str) for key in value)
        if not self.expect(named, path, "a mapping with strings as keys", value) or not isinstance(
            value, dict
        ):
            return {}
        self.wrong += [
            f"{path}.{key}: unknown field; expected one of {', '.join(known)}."
            for key in value
            if known and key not in known
        ]
        return value

    def count(self, value: object, path: str) -> int:
        """An integer of at least 0."""
        self.expect(is_count(value), path, "an integer of at least 0", value)
        return value if isinstance(value, int) else 0


def is_count(value: object) -> bool:
    """Whether this is an integer of at least 0; booleans are not."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_number_in(value: object, low: float, high: float) -> bool:
    """Whether this is a number from `low` to `high`; booleans are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
