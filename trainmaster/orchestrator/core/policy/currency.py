"""Amounts of money: exact decimals and their display."""

from decimal import ROUND_HALF_UP, Decimal

_CENT = Decimal("0.01")


def amount(number: float) -> Decimal:
    """The number's shortest decimal form: 0.1 is exactly 0.1."""
    return Decimal(str(number))


def money(value: Decimal, currency: str) -> str:
    """`12.35 USD`; an amount that rounds to zero cents keeps its digits."""
    rounded = value.quantize(_CENT, rounding=ROUND_HALF_UP)
    return f"{value.normalize():f} {currency}" if value and not rounded else f"{rounded:f} {currency}"
