"""The policy's admission rules: how many jobs run at once, how many start per hour, and what they may cost."""

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
    """At most `jobs` of the runs in scope may have a job at once.

    With `per_model`, each model has its own limit, each team's model of one name too; with `per_team`, each team has;
    with `per_label`, each value of that label has. Only runs with all of `labels`, and whose model name matches `model`,
    are in scope; without any of these fields, all runs are.
    """

    jobs: int
    per_model: bool = False
    per_team: bool = False
    per_label: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None


class UnknownPrices(StrEnum):
    """What happens to a request under a cost cap if the price of something that it asks for is unknown."""

    ALLOW = "allow"
    REFUSE = "refuse"


@dataclass(frozen=True, kw_only=True)
class Caps:
    """How many runs may start in an hour (UTC), and what they may cost; None: no limit."""

    runs_per_hour: int | None = None
    cost_per_run: Decimal | None = None
    cost_per_day: Decimal | None = None
    currency: str = "USD"
    unknown_prices: UnknownPrices = UnknownPrices.ALLOW

    @property
    def of_cost(self) -> bool:
        """Whether a cap depends on the price of runs."""
        return self.cost_per_run is not None or self.cost_per_day is not None

    @property
    def counted(self) -> bool:
        """Whether a cap requires started runs to be counted."""
        return self.runs_per_hour is not None or self.cost_per_day is not None


@dataclass(frozen=True, kw_only=True)
class Admission:
    """The policy's `admission`; if it is absent, nothing is limited.

    `estimates` requires an estimated cost for every run, even if no cap needs it. The command asks its user before it
    submits what may cost more than `confirm_above_usd`, in the price table's currency. Requests may ask for `max_priority`
    at most, and must have `required_labels`, because a limit by label does not cover runs without that label.
    `start_within_s` is the deadline for the start of jobs whose request names none.
    Requests may ask for `max_retries` at most.
    """

    limits: tuple[Limit, ...] = ()
    caps: Caps = field(default_factory=Caps)
    estimates: bool = False
    confirm_above_usd: Decimal = Decimal(50)
    max_priority: int | None = None
    start_within_s: int | None = None
    max_retries: int = 3
    required_labels: tuple[str, ...] = ()

    @property
    def priced(self) -> bool:
        """Whether the price table is needed at all."""
        return self.estimates or self.caps.of_cost


# Any: the policy's schema guarantees the types.
def normalize_admission(document: Mapping[str, Any]) -> dict[str, object]:
    """The policy's `admission` in the form that `Admission` is decoded from: `per` as two keys, amounts as decimals."""
    caps = document.get("caps", {})
    costs = {key: amount(caps[key]) for key in ("cost_per_run", "cost_per_day") if key in caps}
    limits = [_limit(limit) for limit in document.get("limits", ())]
    asks = {key: amount(value) for key, value in document.items() if key == "confirm_above_usd"}
    return {**document, **asks, "limits": limits, "caps": {**caps, **costs}}


def _limit(document: Mapping[str, Any]) -> dict[str, object]:
    rest = {key: value for key, value in document.items() if key not in ("per", "label")}
    per = document.get("per")
    if per in ("model", "team"):
        rest[f"per_{per}"] = True
    elif per is not None:
        rest["per_label"] = per["label"]
    if "label" in document:
        rest["labels"] = document["label"]
    return rest
