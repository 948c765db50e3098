"""The slowest inputs that `bench/fuzz.py --slow` found, replayed: each costs a bounded number of function calls.

Calls are counted, not time: every machine counts the same, whatever its load.
"""

import contextlib
import sys
from random import Random
from types import FrameType

import pytest

from tests.core.fuzz.recipes import MOST_BYTES, Growth, Recipe, changed_recipe, drawn
from tests.core.fuzz.slow import DECLARED, SLOW_PARSERS, SlowParser

MOST_CALLS = 3_500_000
"""The most expensive input takes 2 million."""
BY_NAME = {parser.name: parser for parser in SLOW_PARSERS}
FOUND: tuple[tuple[str, Recipe], ...] = (
    ("request", Recipe(example=3, growths=(Growth(how="keys", fragment={}, count=2400, path=("env",)),))),
    ("request", Recipe(example=0, growths=(Growth(how="raw", fragment="- 1_0:0\n", count=9900),))),
    ("request", Recipe(example=0, growths=(Growth(how="raw", fragment="{n}: 1\n", count=4900),))),
    ("request", Recipe(example=0, growths=(Growth(how="text", fragment="${a}", count=60_000, path=("args", 0)),))),
    ("request of custom-jobs", Recipe(example=1, growths=(Growth(how="keys", fragment=10**30, count=4900),))),
    (
        "request of hp-tuning-jobs",
        Recipe(example=1, growths=(Growth(how="keys", fragment=10**30, count=4900, path=("trialJobSpec",)),)),
    ),
    ("request of ai-platform", Recipe(example=3, growths=(Growth(how="keys", fragment="a", count=4900),))),
    ("request", Recipe(example=0, growths=(Growth(how="keys", fragment=1, count=4400, path=("cluster",)),))),
    ("rule", Recipe(example=0, growths=(Growth(how="items", fragment=1, count=4900, path=("when",)),))),
    ("template", Recipe(example=0, growths=(Growth(how="items", fragment="${rule.id}", count=4900, path=("args",)),))),
    ("model manifest", Recipe(example=0, growths=(Growth(how="keys", fragment=None, count=30_000),))),
    ("rule state", Recipe(example=0, growths=(Growth(how="items", fragment=[[[[1]]]], count=60_000, path=("seen",)),))),
    ("Pub/Sub event", Recipe(example=1, growths=(Growth(how="keys", fragment=[[1]], count=60_000, path=("message",)),))),
    ("policy", Recipe(example=0, growths=(Growth(how="keys", fragment={}, count=4900),))),
)  # fmt: skip


def calls_of(parser: SlowParser, content: bytes) -> int:
    """How many functions the parser calls, of Python's and of C."""
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    with contextlib.suppress(*DECLARED):
        parser.feed(b"{}")  # its imports are not the input's work
    sys.setprofile(count)
    try:
        with contextlib.suppress(*DECLARED):
            parser.feed(content)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize(("name", "recipe"), FOUND)
def test_an_input_that_was_slow_costs_a_bounded_number_of_calls(name: str, recipe: Recipe) -> None:
    parser = BY_NAME[name]
    assert calls_of(parser, recipe.content(parser.examples)) < MOST_CALLS


@pytest.mark.parametrize("parser", SLOW_PARSERS, ids=lambda parser: parser.name)
def test_a_recipe_grows_to_at_most_a_mebibyte_and_is_drawn_again_from_its_seed(parser: SlowParser) -> None:
    random, again = Random("a"), Random("a")
    recipe = drawn(random, parser.examples)
    assert drawn(again, parser.examples) == recipe
    for _ in range(10):
        recipe = changed_recipe(recipe, random, parser.examples)
        assert recipe.growths
    assert len(recipe.content(parser.examples)) <= MOST_BYTES
