"""What the user is told of a rule: schemas/rule_status.v1.schema.json."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from trainmaster.orchestrator.core.retraining.rules.rule import Rule
from trainmaster.orchestrator.core.retraining.state import Fired, HeldBack, RuleState


class RuleStanding(StrEnum):
    ACCEPTED = "accepted"
    REFUSED = "refused"
    DISABLED = "disabled"
    TRIPPED = "tripped"
    RETIRED = "retired"


@dataclass(frozen=True, kw_only=True)
class RuleStatus:
    """Where the latest drop of a rule's file stands.

    Attributes:
        report_uri: why it was refused.
        in_force: the generation that goes on deciding while a newer one is refused; None when none does.
        firings: how many there were.
        reason: in plain words, why it is in this standing.
    """

    schema: str = "rule_status.v1"
    dropped_name: str
    generation: int
    state: RuleStanding
    updated_at: datetime
    rule_id: str | None = None
    report_uri: str | None = None
    in_force: int | None = None
    firings: int | None = None
    last_firing: Fired | None = None
    held: HeldBack | None = None
    reason: str | None = None


def status_of(rule: Rule, state: RuleState | None, now: datetime) -> RuleStatus:
    """The status of an accepted rule."""
    if state is not None and state.tripped_at is not None and state.generation >= rule.generation:
        standing = RuleStanding.TRIPPED
    else:
        standing = RuleStanding.ACCEPTED if rule.enabled else RuleStanding.DISABLED
    return RuleStatus(
        dropped_name=rule.dropped_name,
        generation=rule.generation,
        state=standing,
        updated_at=now,
        rule_id=rule.rule_id,
        in_force=rule.generation if standing is RuleStanding.ACCEPTED else None,
        firings=state.number if state else 0,
        last_firing=state.last if state else None,
        held=state.held if state else None,
    )
