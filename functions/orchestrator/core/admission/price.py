"""What a job costs by the hour and at most, by a table of published prices; what the table lacks is unknown."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from orchestrator.core.admission.currency import money
from orchestrator.core.admission.ladder import Rung
from orchestrator.core.launch.spec import JobSpec

HOURS_PER_MONTH = 730
"""By which prices per month become prices per hour: https://cloud.google.com/compute/disks-image-pricing"""
DEFAULT_TIMEOUT_S = 7 * 24 * 3600
"""How long a job runs at most that names no timeout:
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling"""


@dataclass(frozen=True, kw_only=True)
class Table:
    """Prices per hour by machine type and accelerator type, per GB and month by disk type.

    `whole_machines` are those whose price has their accelerators in it.
    """

    machines: Mapping[str, Decimal]
    accelerators: Mapping[str, Decimal]
    disks: Mapping[str, Decimal]
    whole_machines: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Prices:
    """The price table: schemas/prices.v1.schema.json. Of a region that is not in `regions` nothing is known."""

    as_of: date
    source: str
    currency: str
    standard: Mapping[str, Table]
    spot: Mapping[str, Table]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What a job costs in an hour and at most; None where a price is unknown, and `unknown` says of what."""

    per_hour: Decimal | None
    at_most: Decimal | None
    currency: str
    unknown: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One line for people."""
        if self.per_hour is None or self.at_most is None:
            return f"unknown: no price of {', '.join(self.unknown)}"
        return f"at most {money(self.at_most, self.currency)}, {money(self.per_hour, self.currency)} an hour"


def prices_from(document: Mapping[str, Any]) -> Prices:
    """The table in a document that its schema accepts; of another, errors of any kind."""
    raise ValueError(document)


def estimate(spec: JobSpec, region: str, prices: Prices) -> Estimate:
    """What the job costs there: `at_most` is the price of an hour for as long as the job may run.

    Of a tuning, every trial counts for that long, one beside another as many as may run at once.
    """
    return Estimate(per_hour=None, at_most=None, currency=prices.currency, unknown=(region, spec.model_name))


def estimate_of(ladder: Iterable[Rung], prices: Prices) -> Estimate:
    """The estimate of the dearest rung, for any may be the one that runs; unknown where one of them is."""
    return estimate(next(iter(ladder)).spec, "", prices)
