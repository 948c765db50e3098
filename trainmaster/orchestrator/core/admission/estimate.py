"""What a job costs in an hour and at most."""

from dataclasses import dataclass
from decimal import Decimal

from trainmaster.orchestrator.core.policy.currency import money


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a job costs in an hour and at most; None where a price is unknown, and `unknown` says of what.

    With both, amounts and `unknown`, some candidates are known and others are not: one that is unknown may cost more.
    `as_of` is the date of the oldest row of the price table.
    """

    per_hour: Decimal | None
    at_most: Decimal | None
    currency: str
    as_of: str
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for people."""
        if self.per_hour is None or self.at_most is None:
            return f"unknown: no price of {', '.join(self.unknown)}"
        known = f"at most {money(self.at_most, self.currency)}, {money(self.per_hour, self.currency)} an hour"
        return f"{known}; unknown in part: no price of {', '.join(self.unknown)}" if self.unknown else known
