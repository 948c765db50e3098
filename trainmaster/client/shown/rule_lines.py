"""Lines about a rule: where it stands and why, its limits, and what comes next."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.terminal import STATE, Fact
from trainmaster.client.times import minute, span
from trainmaster.orchestrator.core.retraining.rule import Rule, WhileRunning

WHILE_RUNNING: Mapping[WhileRunning, str] = {
    WhileRunning.SKIP: "While its last run is active, nothing starts.",
    WhileRunning.QUEUE_ONE: "While its last run is active, one firing waits for its end.",
    WhileRunning.REPLACE: "If its last run is active, that is ended first.",
}
"""What happens to a firing while the run before it is active, by the rule's `while_running`."""


def rule_facts(rule: FoundRule, now: datetime) -> Iterator[Fact]:
    """The screen of a rule."""
    yield "rule", [rule.name]
    yield STATE, [rule.standing]
    if reasons := list(standing_reasons(rule)):
        yield "reason", reasons
    yield from version_facts(rule)
    if rule.rule is not None:
        yield "when", [*map(str, rule.rule.conditions)]
    if rule.decides:
        yield "next", [next_text(rule, now) or "when a condition is met"]


def version_facts(rule: FoundRule) -> Iterator[Fact]:
    """The rule's file, its model and limits, and its firings."""
    yield "file", [rule.dropped_name]
    if rule.rule is not None:
        yield "model", [rule.rule.model_name]
        yield "active run", [WHILE_RUNNING[rule.rule.while_running]]
        yield "limits", [limits_text(rule.rule)]
    if rule.state is not None:
        recent = f"{rule.state.number}, {len(rule.state.fired_at)} of them in the last 24 hours"
        yield "firings", [recent if rule.state.number else "none yet"]
    if rule.status is not None and (last := rule.status.last_firing) is not None:
        yield "last firing", [f"{minute(last.at)} UTC by {last.condition}: {last.run_id}"]


def limits_text(version: Rule) -> str:
    """How often the rule may fire."""
    between = f", {span(version.cooldown)} between two" if version.cooldown else ""
    return f"at most {version.max_per_day} firings in 24 hours{between}"


def standing_reasons(rule: FoundRule) -> Iterator[str]:
    """Why the rule does not fire: it is refused, in quarantine, paused, or its file is gone or unanswered."""
    status = rule.status
    if status is None:
        yield "the service has not answered the file yet"
    if not rule.has_file:
        yield "its file is deleted; it retires within a minute"
    if status is not None:
        yield from status.problems or filter(None, [status.reason])
        if status.in_force is not None and rule.rule is not None and status.generation != status.in_force:
            yield "the previous version is in force"
    if rule.rule is not None and not rule.rule.document.get("enabled", True):
        yield "it is paused"


def next_text(rule: FoundRule, now: datetime) -> str:
    """The next scheduled time, the counts, and why a due firing is held back.

    Of a refused rule or one in quarantine, why it is.
    """
    if rule.standing in ("refused", "quarantined") and rule.status is not None:
        return rule.status.reason or ""
    if not rule.decides:
        return ""
    due, reason = rule.next_at(now), rule.held_reason()
    times, reasons = [f"{minute(due)} UTC"] if due else [], [f"held: {reason}"] if reason else []
    return ", ".join([*times, *rule.counts(), *reasons])
