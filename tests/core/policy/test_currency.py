"""Amounts of money, in refusals and on screens."""

from decimal import Decimal

import pytest

from trainmaster.orchestrator.core.policy.currency import money, shown_bound, shown_money


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        ("0", "0.00 USD"),
        ("0.000015", "less than 0.01 USD"),
        ("0.00999", "less than 0.01 USD"),
        ("0.01", "0.01 USD"),
        ("0.0551", "0.06 USD"),
        ("12.345678901", "12.35 USD"),
    ],
)
def test_a_screen_shows_two_decimals_and_names_less_than_a_cent(amount: str, shown: str) -> None:
    assert shown_money(Decimal(amount), "USD") == shown


def test_an_upper_bound_is_never_shown_below_its_amount_of_less_than_a_cent() -> None:
    assert shown_bound(Decimal("0.000024"), "USD") == "0.01 USD"
    assert shown_bound(Decimal("5.887"), "USD") == "5.89 USD"
    assert shown_bound(Decimal(0), "USD") == "0.00 USD"


def test_a_refusal_keeps_the_digits_of_an_amount_below_a_cent() -> None:
    assert money(Decimal("0.0004"), "USD") == "0.0004 USD"
