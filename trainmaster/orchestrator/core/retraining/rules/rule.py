"""A sound rule. `reading.rule_in` makes one of a dropped file; the book keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from trainmaster.orchestrator.core.retraining.rules.condition import (
    Age,
    Alert,
    Condition,
    Manual,
    NewData,
    NewImage,
    Schedule,
    Upstream,
    condition_from,
)
from trainmaster.orchestrator.core.retraining.rules.filling import Place

__all__ = [
    "Age",
    "Alert",
    "Condition",
    "Makes",
    "Manual",
    "NewData",
    "NewImage",
    "Rule",
    "Schedule",
    "Upstream",
    "WhileRunning",
    "rule_from",
]

DEFAULT_MAX_PER_DAY = 24


class WhileRunning(StrEnum):
    """What becomes of a firing while the rule's last run is still going."""

    SKIP = "skip"
    QUEUE_ONE = "queue_one"
    REPLACE = "replace"


@dataclass(frozen=True, kw_only=True)
class Makes:
    """What a request's runs make: always the same, whatever fires the rule.

    `output_prefix_uri` None means the models bucket; `promotes`, that the runs may become champions.
    """

    model_name: str
    output_prefix_uri: str | None = None
    promotes: bool = False


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What to watch, and the request to run when it happens.

    Attributes:
        generation: of the dropped file.
        request: the request with its places, inline; None where `request_uri` names it.
        request_uri: `gs://` object of the inbox that holds the request; read again at each firing.
        makes: what the request's runs make.
        writes_uri: `gs://…/` under which they write.
        places: of the request as it was when the rule was accepted.
        max_per_day: firings in any 24 hours.
        document: the file's content as values.
    """

    rule_id: str
    dropped_name: str
    generation: int
    conditions: tuple[Condition, ...]
    request: Mapping[str, Any] | None
    request_uri: str | None
    makes: Makes
    writes_uri: str
    places: tuple[Place, ...]
    while_running: WhileRunning
    cooldown: timedelta
    max_per_day: int
    enabled: bool
    document: Mapping[str, Any]

    @property
    def model_name(self) -> str:
        return self.makes.model_name

    @property
    def new_data(self) -> tuple[NewData, ...]:
        return tuple(condition for condition in self.conditions if isinstance(condition, NewData))

    @property
    def identity(self) -> str:
        """What a redelivery of the drop repeats."""
        return f"{self.rule_id}@{self.generation}"


def rule_from(
    document: Mapping[str, Any],
    *,
    rule_id: str,
    dropped_name: str,
    generation: int,
    makes: Makes,
    writes_uri: str,
    places: tuple[Place, ...],
) -> Rule:
    """The rule of a document that was found sound."""
    return Rule(
        rule_id=rule_id,
        dropped_name=dropped_name,
        generation=generation,
        conditions=tuple(condition_from(each) for each in document["when"]),
        request=document.get("request"),
        request_uri=document.get("request_uri"),
        makes=makes,
        writes_uri=writes_uri,
        places=places,
        while_running=WhileRunning(document.get("while_running", WhileRunning.SKIP)),
        cooldown=timedelta(seconds=document.get("cooldown_s", 0)),
        max_per_day=document.get("max_per_day", DEFAULT_MAX_PER_DAY),
        enabled=document.get("enabled", True),
        document=document,
    )
