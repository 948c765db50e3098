"""Amounts of money: exact decimals, and how people read them."""

from decimal import ROUND_HALF_UP, Decimal

_CENT = Decimal("0.01")


def amount(number: float) -> Decimal:
    """The decimal that was written: 0.1 is 0.1."""
    return Decimal(str(number))


def money(value: Decimal, currency: str) -> str:
    """`12.35 USD`; what is less than a cent keeps the digits that it has."""
    rounded = value.quantize(_CENT, rounding=ROUND_HALF_UP)
    return f"{value.normalize():f} {currency}" if value and not rounded else f"{rounded:f} {currency}"
