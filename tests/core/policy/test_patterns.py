"""The meaning of `*` and `**`, against a second reading of them, and the cost of a hostile pattern."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trainmaster.orchestrator.core.policy.policy import glob_matches

TEXTS = st.text("ab/\n", max_size=12)


def fits(pattern: str, text: str) -> bool:
    """The same by trying everything: slow, and plain to see."""
    if not pattern:
        return not text
    if pattern.startswith("**"):
        return any(fits(pattern[2:], text[cut:]) for cut in range(len(text) + 1))
    if pattern.startswith("*"):
        slash = text.find("/")
        most = len(text) if slash < 0 else slash
        return any(fits(pattern[1:], text[cut:]) for cut in range(most + 1))
    return text[:1] == pattern[0] and fits(pattern[1:], text[1:])


@settings(max_examples=300, deadline=None)
@example("**a*b", "a/ab")
@example("***b", "a/b")
@example("*a/*b**a*", "aa/abb/a")
@example("****", "/")
@given(st.text("ab/*", max_size=8), TEXTS)
def test_a_pattern_matches_what_trying_everything_finds(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) is fits(pattern, text)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["*a" * 40 + "b", "**a" * 40 + "b", "**a*" * 40 + "b", "*" * 500 + "b"])
def test_no_pattern_takes_time_without_end(pattern: str) -> None:
    assert not glob_matches(pattern, "a" * 1024)
    assert not glob_matches(pattern, "a/" * 512)


@pytest.mark.timeout(20)
def test_a_text_longer_than_any_name_matches_nothing() -> None:
    """The time grows with the square of the text's length: a request may have texts of 1 MiB."""
    assert not glob_matches("a**b*c", "ab" * 500_000)
    assert not glob_matches("**", "a" * 4097)
    assert not glob_matches("*a" * 500_000, "a")
