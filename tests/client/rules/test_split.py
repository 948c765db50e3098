"""How an endpoint's traffic is shared out when a version gets a share of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmaster.client.rules.serving import split_with

splits = st.lists(st.integers(0, 100), max_size=5).map(
    lambda cuts: {f"{n}": b - a for n, (a, b) in enumerate(zip([0, *sorted(cuts)], [*sorted(cuts), 100], strict=True)) if b > a}
)  # fmt: skip


@given(splits, st.sampled_from("0123459"), st.integers(1, 100))
def test_a_version_gets_what_was_asked_and_the_others_the_rest(
    before: dict[str, int], new: str, share: int
) -> None:
    share = share if before.keys() - {new} else 100
    after = split_with(before, new, share)
    assert (after[new], sum(after.values())) == (share, 100)
    assert after.keys() <= {*before, new}
    assert min(after.values()) > 0


@pytest.mark.parametrize(
    ("before", "share", "after"),
    [
        ({"a": 50, "b": 50}, 99, {"a": 1, "n": 99}),
        ({"a": 10, "b": 80, "n": 10}, 50, {"a": 5, "b": 45, "n": 50}),
        ({"a": 33, "b": 67}, 10, {"a": 29, "b": 61, "n": 10}),
    ],
)
def test_the_largest_other_gets_what_rounding_leaves(
    before: dict[str, int], share: int, after: dict[str, int]
) -> None:
    assert split_with(before, "n", share) == after
