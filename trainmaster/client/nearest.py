"""The names that a misspelt one may mean."""

import difflib
from collections.abc import Collection, Mapping

SUGGESTIONS_MAX = 3
COMPARED_MAX = 10_000
"""Comparing takes about 20 microseconds for each name."""


def nearest_names(name: str, known: Collection[str]) -> str:
    """`Did you mean 'a' or 'b'?`; empty if no known name is near."""
    return nearest_of(name, {each: each for each in known})


def nearest_of(name: str, known: Mapping[str, str]) -> str:
    """The same, where each key of `known` stands for its value: keys are compared, and values suggested.

    Keys that begin with the name come first: a cut one is copied more often than a misspelt one is typed.
    """
    keys = list(known)[:COMPARED_MAX]
    begun = [key for key in keys if name and key.startswith(name)]
    near = [*begun[:SUGGESTIONS_MAX], *difflib.get_close_matches(name[:100], keys, n=SUGGESTIONS_MAX)]
    meant = list(dict.fromkeys(known[each] for each in near))[:SUGGESTIONS_MAX]
    return f"Did you mean {' or '.join(map(repr, meant))}?" if meant else ""
