"""Patterns and texts that were slow once, replayed: each costs a bounded number of function calls.

The worst of them never ended. What RE2 does is one call: tests/stack/logging and tests/stack/storage have patterns that
Python's own expressions do not end with.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.fuzz.test_slow import MOST_CALLS, calls_of
from tests.stack.jobs.test_filters import labelled
from trainmaster.client.submission.gitignore.lines import Gitignore, GitignoreError
from trainmaster.inspect.smoke.last_error import parse_last_error
from trainstack.errors import ApiError
from trainstack.jobs import listing as job_filters
from trainstack.jobs.images.dockerfile import ImageError, read_image
from trainstack.jobs.images.installs import lines_of, names_a_path
from trainstack.jobs.images.recipes import recipe_of
from trainstack.logging.filters import FilterTooCostlyError, FilterWork, LogFilterError, parse_filter
from trainstack.storage.objects.errors import RefusedError
from trainstack.storage.objects.listing import glob_pattern

ENTRIES = (
    {"textPayload": "ab" * 125_000},
    {"jsonPayload": {f"a{number}": "a" for number in range(15_000)}},
    {"jsonPayload": {"a": ["a"] * 60_000}},
)
REFUSALS = (RefusedError, LogFilterError, FilterTooCostlyError, ApiError, ImageError, GitignoreError)


def glob(text: str, _: Path) -> object:
    return [glob_pattern(text).matches(name) for name in ("a" * 1024, "ab" * 512, "a/" * 512)]


def log_filter(text: str, _: Path) -> object:
    found = parse_filter.__wrapped__(text)
    return [found.passes(entry, FilterWork(entry_bytes=250_000)) for entry in ENTRIES]


def job_filter(text: str, _: Path) -> object:
    return job_filters.parse_filter(text).matches(labelled({"team": "a" * 60}).message)


def gitignore(text: str, _: Path) -> object:
    read = Gitignore(text.encode())
    return [read.verdict(path, is_folder=False) for path in (b"a" * 255, b"a/" * 500 + b"ab" * 100)]


def dockerfile(text: str, tree: Path) -> object:
    """What a job does with a source tree that has this Dockerfile."""
    for part in ("requirements.txt", "a"):
        (tree / part).write_text("packaging\n")
    (tree / "Dockerfile").write_text(f"FROM python:3.11\nCOPY . .\n{text}")
    return recipe_of(read_image(tree))


def requirements(text: str, tree: Path) -> object:
    path = tree / "requirements.txt"
    path.write_text(text)
    return [names_a_path(line) for line in lines_of(path)]


def last_words(text: str, _: Path) -> object:
    return parse_last_error(text, Path("/nowhere"))


NUMBERED = "".join(f"!*a{number}\n*b{number}\n" for number in range(4900))


@pytest.mark.slow(20)
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("feed", "text"),
    [
        (glob, "{*a,**a}" * 200),
        (log_filter, "a OR " * 3990),
        (log_filter, 'jsonPayload.a=~"[ab]*c" ' * 700),
        (job_filter, "labels.team:a " * 100_000),
        (gitignore, NUMBERED),
        (dockerfile, "ENV A=a\n" + "ENV A=$A$A\n" * 40),
        (dockerfile, "COPY a /b\nRUN pip install -r requirements.txt\n" * 900),
        (dockerfile, "ENV A=a\n" + "${a:-" * 20_000),
        (requirements, "a\n" * 250_000),
        (requirements, "a<1," * 120_000),
        (last_words, "\n" * 1_000_000),
    ],
    ids=lambda value: value[:12].replace("\n", " ") if isinstance(value, str) else value.__name__,
)
def test_a_text_that_was_slow_costs_a_bounded_number_of_calls(
    feed: Callable[[str, Path], object], text: str, tmp_path: Path
) -> None:
    def refused_or_read() -> None:
        try:
            feed(text, tmp_path)
        except REFUSALS:
            return

    assert calls_of(refused_or_read) < MOST_CALLS
