"""Patterns and texts that were slow once, replayed: each costs a bounded number of function calls.

The worst of them never ended. What RE2 does is one call: tests/stack/logging and tests/stack/storage have patterns that
Python's own expressions do not end with, and the search of `bench/fuzz.py --slow` counts processor time.
"""

import pytest

from tests.core.fuzz.slow import SlowParser
from tests.core.fuzz.test_slow import MOST_CALLS, calls_of
from tests.core.fuzz.text_recipes import Part, TextRecipe
from tests.stack.fuzz.slow_texts import TEXT_PARSERS

BY_NAME = {parser.name: parser for parser in TEXT_PARSERS}
FOUND: tuple[tuple[str, int, str, int], ...] = (
    ("glob of a listing", -1, "{*a,**a}", 200),
    ("log filter", -1, "a OR ", 3990),
    ("log filter", -1, 'jsonPayload.a=~"[ab]*c" ', 700),
    ("filter of jobs", -1, "labels.team:a ", 100_000),
    (".gitignore", -1, "!*a{n}\n*b{n}\n", 4900),
    ("Dockerfile", 0, "ENV A=$A$A\n", 40),
    ("Dockerfile", 1, "COPY a /b\nRUN pip install -r requirements.txt\n", 900),
    ("Dockerfile", 0, "${a:-", 20_000),
    ("requirement file", -1, "a\n", 250_000),
    ("requirement file", -1, "a<1,", 120_000),
    ("program's last words", -1, "\n", 1_000_000),
)  # fmt: skip


@pytest.mark.slow(20)
@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "example", "fragment", "count"), FOUND)
def test_a_text_that_was_slow_costs_a_bounded_number_of_calls(
    name: str, example: int, fragment: str, count: int
) -> None:
    parser = BY_NAME[name]
    recipe = TextRecipe(example=example, parts=(Part(fragment=fragment, count=count),))
    assert calls_of(parser, recipe.content(parser.examples)) < MOST_CALLS


@pytest.mark.parametrize("parser", TEXT_PARSERS, ids=lambda parser: parser.name)
def test_every_example_is_taken(parser: SlowParser) -> None:
    for example in parser.examples:
        parser.feed(str(example).encode())
