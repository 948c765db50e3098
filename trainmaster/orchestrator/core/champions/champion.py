"""Champions: the best model under one name, by what its requests declare, and how it came to be.

The document is schemas/champion.v1.schema.json.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from trainmaster.orchestrator.core.champions.lineage import Lineage
from trainmaster.orchestrator.core.requests.tuning import Goal

KEPT_REIGNS = 200
KEPT_VERDICTS = 50


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What makes two values comparable. `evaluation_split` None: the metric is the training's own."""

    metric: str
    goal: Goal
    dataset: str | None = None
    evaluation_split: str | None = None


class Cause(StrEnum):
    PROMOTION = "promotion"
    ROLLBACK = "rollback"


@dataclass(frozen=True, kw_only=True)
class Reign:
    """One model's time as champion. `number` counts from 1; `order_id` names the rollback that began it."""

    number: int
    cause: Cause
    run_id: str
    model_uri: str
    value: float
    contest: Contest
    since: datetime
    lineage: Lineage
    order_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one challenger, and why."""

    run_id: str
    promoted: bool
    reason: str
    at: datetime
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The document of one model name. `current` is None while no challenger could be compared at all.

    `history` holds every reign up to the present one, oldest first, at most KEPT_REIGNS.
    """

    schema: str = "champion.v1"
    model_name: str
    current: Reign | None = None
    history: tuple[Reign, ...] = ()
    considered: tuple[Verdict, ...] = ()
    updated_at: datetime


def crowned(champion: Champion, reign: Reign) -> Champion:
    return replace(champion, current=reign, history=(*champion.history, reign)[-KEPT_REIGNS:])
