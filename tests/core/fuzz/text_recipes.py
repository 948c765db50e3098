"""Texts that grow: a few fragments of a format repeated around an example, kept as a short recipe."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.core.fuzz.recipes import COUNTS, MOST_BYTES, NUMBER

TEXT_COUNTS = (1, 3, 20, 120, 500, 1800, *COUNTS)
"""Around the limits on texts, too."""
COMMON = (
    "a", "a{n}", " ", "\n", "\t", "/", ".", "-", "=", "\\", '"', "'", "(", "[", "{", "*", "?", "é", "1",
    ",",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Part:
    """A fragment repeated, after the example or before it."""

    fragment: str
    count: int
    is_before: bool = False


@dataclass(frozen=True, kw_only=True)
class TextRecipe:
    """The example number `example`, or nothing for -1, between its parts."""

    example: int
    parts: tuple[Part, ...]

    def content(self, examples: Sequence[Any]) -> bytes:
        """At most MOST_BYTES."""
        example = str(examples[self.example]) if self.example >= 0 else ""
        before, after = (
            "".join(_repeated(part) for part in self.parts if part.is_before is is_before)
            for is_before in (True, False)
        )
        return (before + example + after).encode("utf-8", "surrogatepass")[:MOST_BYTES]


def _repeated(part: Part) -> str:
    count = min(part.count, MOST_BYTES // max(1, len(part.fragment)))
    if NUMBER not in part.fragment:
        return part.fragment * count
    return "".join(part.fragment.replace(NUMBER, str(number)) for number in range(count))


def grown_from(fragments: Sequence[str]) -> tuple[Callable[..., TextRecipe], Callable[..., TextRecipe]]:
    """How a parser of a format with these fragments draws a recipe, and changes one."""
    every = (*fragments, *COMMON)

    def part(random: Random) -> Part:
        several = random.choice((1, 1, 1, 2, 3))
        fragment = "".join(random.choice(every) for _ in range(several))
        return Part(fragment=fragment, count=random.choice(TEXT_COUNTS), is_before=random.random() < 0.3)

    def draw(random: Random, examples: Sequence[Any]) -> TextRecipe:
        return TextRecipe(example=random.randrange(-1, len(examples)), parts=(part(random),))

    def change(recipe: TextRecipe, random: Random, examples: Sequence[Any]) -> TextRecipe:
        parts, place = list(recipe.parts), random.randrange(len(recipe.parts))
        match random.randrange(6):
            case 0 | 1:
                parts[place] = replace(parts[place], count=random.choice(TEXT_COUNTS))
            case 2:
                parts[place] = part(random)
            case 3:
                parts[place] = replace(parts[place], fragment=parts[place].fragment + random.choice(every))
            case 4 if len(parts) < 4:
                parts.append(part(random))
            case _:
                parts = parts[:place] + parts[place + 1 :] or [part(random)]
        example = random.randrange(-1, len(examples)) if random.random() < 0.2 else recipe.example
        return TextRecipe(example=example, parts=tuple(parts))

    return draw, change
