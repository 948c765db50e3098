"""Documents that grow: a few fragments of one example repeated, so that a large input is kept as a short recipe."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from tests.core.fuzz.mutation import Place, places

MOST_BYTES = 1 << 20
HOWS = ("text", "items", "keys", "copies", "nested", "raw")
COUNTS = (8, 60, 250, 900, 2400, 4900, 9900, 30_000, 120_000, 1_000_000)
"""Around the limits on values, and beyond them."""
NUMBER = "{n}"
"""In a fragment: the number of the repetition, so that no two are the same."""
TEXTS = (
    *("a", "a.", "a-", "a=", "a_TOKEN=", "--a=", "eyJ-", "eyJhbGciOiJI.", "ab://", "a://b:", "-----BEGIN ", "AIza"),
    *("${", "${a}", "${rule.id}", "${run_id}", "$${", "${project}", "projects/a/", "gs://a/", "/gcs/", "../", "/", "*"),
    *("**a", "*a", "a{n}", "a{n} ", "é", "\n", " ", "\t", "\x00", "\x1b[", "'", '"', "\\", "[", ".", "9", "1:", "-1,", "0/"),
    *("Error: ", "error: a\n", "trial fail ", "workertemp_a/", "No module named ", 'File "a", line 1\n', "{{a}} ", "usage: "),
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    1,
    50.0,
    -1,
    10**30,
    True,
    None,
    "",
    "a{n}",
    "scheduling{n}",
    "learning_rat{n}",
    "x" * 190,
    [],
    {},
    [[[[1]]]],
)
RAW = (
    *("- a\n", "? a\n: b\n", "a{n}: 1\n", "{n}: 1\n", "a{n}: yes\n", "&a{n} ", "#\n", "\n", "'a\n", '"\\x41\\\n', "- - ", "- [a]\n"),
    *("%TAG !a{n}! x\n", "!a{n} ", "{a{n}: 1}, ", "[a, ", "{a: ", "a: |\n a\n", "<<: a\n", "- 1_0:0\n", "1e5, ", '"a{n}":1,', "[1],"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Growth:
    """What is repeated, how often, and where: at `path` in the document, or as `raw` text after it."""

    how: str
    fragment: Any
    count: int
    path: Place = ()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The example number `example`, grown."""

    example: int
    growths: tuple[Growth, ...]

    def content(self, examples: Sequence[Any]) -> bytes:
        """At most MOST_BYTES: what would be larger is repeated less often."""
        for share in (1, 0.5, 0.2, 0.05):
            whole, raw = copy.deepcopy(examples[self.example]), ""
            for growth in self.growths:
                less = replace(growth, count=max(1, int(growth.count * share)))
                if growth.how == "raw":
                    raw = _repeated(less.fragment, less.count, MOST_BYTES)
                else:
                    whole = _grown(whole, less)
            content = (raw or json.dumps(whole, ensure_ascii=False)).encode("utf-8", "surrogatepass")
            if len(content) <= MOST_BYTES:
                return content
        return content[:MOST_BYTES]


def _repeated(fragment: str, count: int, most: int) -> str:
    count = min(count, most // max(1, len(fragment)))
    if NUMBER not in fragment:
        return fragment * count
    return "".join(fragment.replace(NUMBER, str(number)) for number in range(count))[:most]


def _grown(whole: Any, growth: Growth) -> Any:
    here = whole
    try:
        for part in growth.path:
            here = here[part]
    except (KeyError, IndexError, TypeError):
        return whole  # an earlier growth replaced it
    size = len(json.dumps(growth.fragment if growth.how != "copies" else here, default=str))
    count = min(growth.count, MOST_BYTES // (size + 8))
    new = _new(here, growth, count)
    if not growth.path:
        return new
    holder = whole
    for part in growth.path[:-1]:
        holder = holder[part]
    match growth.how, holder:
        case "copies", dict():
            holder.update({f"{growth.path[-1]}{number}": here for number in range(count)})
        case "copies", list():
            holder.extend([here] * count)
        case _, dict() | list():
            holder[growth.path[-1]] = new
    return whole


def _new(here: Any, growth: Growth, count: int) -> Any:
    match growth.how:
        case "text":
            return _repeated(str(growth.fragment), count, MOST_BYTES)
        case "items":
            return [_numbered(growth.fragment, number) for number in range(count)]
        case "keys":
            base = here if isinstance(here, dict) else {}
            return {
                **base,
                **{f"{growth.path[-1:] and growth.path[-1]}{n}": growth.fragment for n in range(count)},
            }
        case "nested":
            for _ in range(min(count, 30)):
                here = [here]
            return here
    return here


def _numbered(fragment: Any, number: int) -> Any:
    return fragment.replace(NUMBER, str(number)) if isinstance(fragment, str) else fragment


def drawn(random: Random, examples: Sequence[Any]) -> Recipe:
    example = random.randrange(len(examples))
    return Recipe(example=example, growths=(_growth(random, examples[example]),))


def changed_recipe(recipe: Recipe, random: Random, examples: Sequence[Any]) -> Recipe:
    """The recipe with a growth more, one less, or one of another place, fragment or count."""
    growths, place = list(recipe.growths), random.randrange(len(recipe.growths))
    old, new = growths[place], _growth(random, examples[recipe.example])
    match random.randrange(6):
        case 0 | 1:
            growths[place] = Growth(
                how=old.how, fragment=old.fragment, path=old.path, count=random.choice(COUNTS)
            )
        case 2:
            growths[place] = Growth(how=old.how, fragment=old.fragment, path=new.path, count=old.count)
        case 3:
            growths[place] = new
        case 4 if len(growths) < 4:
            growths.append(new)
        case _:
            growths = growths[:place] + growths[place + 1 :] or [new]
    return Recipe(example=recipe.example, growths=tuple(growths))


def _growth(random: Random, document: Any) -> Growth:
    how = random.choice(HOWS)
    fragments = {"text": TEXTS, "raw": RAW}.get(how, VALUES)
    found = places(document)
    path = random.choice(found[1:] or found)
    if random.random() < 0.2:
        path = random.choice(((), path[:1]))
    if how in ("copies", "keys", "items", "text", "nested") and not path:
        how = "keys" if isinstance(document, dict) else "items"
        fragments = VALUES
    return Growth(how=how, fragment=random.choice(fragments), path=path, count=random.choice(COUNTS))
