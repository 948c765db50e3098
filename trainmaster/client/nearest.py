"""The names that a misspelt one may mean."""

import difflib
from collections.abc import Collection

SUGGESTIONS_MAX = 3
COMPARED_MAX = 10_000
"""Comparing takes about 20 microseconds for each name."""


def nearest_names(name: str, known: Collection[str]) -> str:
    """`Did you mean 'a' or 'b'?`; empty if no known name is near."""
    near = difflib.get_close_matches(name[:100], list(known)[:COMPARED_MAX], n=SUGGESTIONS_MAX)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else ""
