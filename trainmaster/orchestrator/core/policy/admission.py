"""What the policy says about admission: how many jobs run at once, how many start, and what they may cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any

from trainmaster.orchestrator.core.policy.currency import amount

DEFAULT_PRIORITY = 50
"""The priority of a request that names none; higher ones go first."""


@dataclass(frozen=True, kw_only=True)
class Limit:
    """At most `jobs` of the runs meant may have a job at once.

    Meant are: with `per_model` those of one model, for every model by itself; with `per_label` those with one
    value of that label, for every value by itself; those that have all of `labels`; those whose model's name
    matches `model`; without any of these, all runs.
    """

    jobs: int
    per_model: bool = False
    per_label: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None


class UnknownPrices(StrEnum):
    """What becomes of a request under a cap of cost where the price of something it asks for is unknown."""

    ALLOW = "allow"
    REFUSE = "refuse"


@dataclass(frozen=True, kw_only=True)
class Caps:
    """How many runs may be started in an hour (UTC), and what they may cost; None: any number, any cost."""

    runs_per_hour: int | None = None
    cost_per_run: Decimal | None = None
    cost_per_day: Decimal | None = None
    currency: str = "USD"
    unknown_prices: UnknownPrices = UnknownPrices.ALLOW

    @property
    def of_cost(self) -> bool:
        """Whether the price of a run matters."""
        return self.cost_per_run is not None or self.cost_per_day is not None

    @property
    def counted(self) -> bool:
        """Whether the runs that were started must be counted."""
        return self.runs_per_hour is not None or self.cost_per_day is not None


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The policy's `admission`; one that is not there limits nothing.

    `estimates` asks for the estimated cost of every run, also where no cap needs it. Requests may ask for
    `max_priority` at most, and must have `required_labels`: a limit by label does not mean those without it.
    """

    limits: tuple[Limit, ...] = ()
    caps: Caps = field(default_factory=Caps)
    estimates: bool = False
    max_priority: int | None = None
    required_labels: tuple[str, ...] = ()

    @property
    def priced(self) -> bool:
        """Whether the price table is needed at all."""
        return self.estimates or self.caps.of_cost


# Any: the policy's schema vouches for the types.
def normalize_admission(document: Mapping[str, Any]) -> dict[str, object]:
    """The policy's `admission` as `Admission` is decoded from: `per` in two keys, amounts as decimals."""
    caps = document.get("caps", {})
    costs = {key: amount(caps[key]) for key in ("cost_per_run", "cost_per_day") if key in caps}
    limits = [_limit(limit) for limit in document.get("limits", ())]
    return {**document, "limits": limits, "caps": {**caps, **costs}}


def _limit(document: Mapping[str, Any]) -> dict[str, object]:
    rest = {key: value for key, value in document.items() if key not in ("per", "label")}
    per = document.get("per")
    if per == "model":
        rest["per_model"] = True
    elif per is not None:
        rest["per_label"] = per["label"]
    if "label" in document:
        rest["labels"] = document["label"]
    return rest
