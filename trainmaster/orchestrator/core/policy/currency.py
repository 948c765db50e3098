"""Amounts of money: exact decimals and their display."""

from decimal import ROUND_HALF_UP, Decimal

_CENT = Decimal("0.01")


def amount(number: float) -> Decimal:
    """The number's shortest decimal form: 0.1 is exactly 0.1."""
    return Decimal(str(number))


def money(value: Decimal, currency: str) -> str:
    """`12.35 USD`, for refusals, whose amounts are compared; an amount that rounds to zero cents keeps its digits."""
    rounded = value.quantize(_CENT, rounding=ROUND_HALF_UP)
    return f"{value.normalize():f} {currency}" if value and not rounded else f"{rounded:f} {currency}"


def shown_money(value: Decimal, currency: str, *, is_narrow: bool = False) -> str:
    """`12.35 USD`, for screens: an amount below one cent is `less than 0.01 USD`, or narrow `< 0.01 USD`."""
    if not 0 < value < _CENT:
        return money(value, currency)
    return f"{'<' if is_narrow else 'less than'} {_CENT} {currency}"


def shown_bound(value: Decimal, currency: str) -> str:
    """`12.35 USD`, for screens: an upper bound below one cent is shown as one cent."""
    return money(max(value, _CENT) if value else value, currency)
