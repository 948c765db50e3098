"""Lines about a rule: where it stands and why, its limits, and what comes next."""

import zoneinfo
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.terminal import STATE, Fact, plural
from trainmaster.client.times import minute, span
from trainmaster.orchestrator.core.retraining.condition import Manual, Schedule
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
        is_one = len(rule.rule.conditions) == 1
        yield "when" if is_one else "when any of", [*map(str, rule.rule.conditions)]
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


def when_text(version: Rule) -> str:
    """The rule's conditions in a few words."""
    texts = ", ".join(map(str, version.conditions))
    return texts if len(version.conditions) == 1 else f"any of: {texts}"


def idle_text(rule: FoundRule, now: datetime) -> str:
    """How long the rule has not fired, if that is long: three periods of its schedule, or without one 30 days."""
    version, last = rule.rule, rule.status.last_firing if rule.status else None
    began = rule.state.since if rule.state is not None else None
    since = last.at if last is not None else began
    if version is None or since is None or not rule.decides:
        return ""
    timers = (condition for condition in version.conditions if isinstance(condition, Schedule))
    limits = [3 * period for timer in timers if (period := _period(timer, since))]
    limit = max(min(limits, default=IDLE_FOR), IDLE_AT_LEAST)
    if now - since < limit or all(isinstance(member, Manual) for member in version.members):
        return ""
    if last is None:
        return f"never fired since {since:%Y-%m-%d}"
    return f"not fired for {(now - since).days} days"


def _period(timer: Schedule, since: datetime) -> timedelta | None:
    first = timer.next_due(since)
    second = timer.next_due(first) if first is not None else None
    return second - first if first is not None and second is not None else None


def limits_text(version: Rule) -> str:
    """How often the rule may fire."""
    between = f", {span(version.cooldown)} between two" if version.cooldown else ""
    before = f", not before {minute(version.not_before)} UTC" if version.not_before else ""
    windows = (
        f", not in {plural(len(version.blackout), 'window')} of its blackout" if version.blackout else ""
    )
    return f"at most {version.max_per_day} firings in 24 hours{between}{before}{windows}"


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


TIMES_SHOWN = 3
IDLE_FOR, IDLE_AT_LEAST = timedelta(days=30), timedelta(days=7)


def when_lines(version: Rule, now: datetime) -> Iterator[str]:
    """Whether any of several conditions fires the rule, and the next times of each schedule, in its zone with the offset."""
    if len(version.conditions) > 1:
        yield f"fires by {when_text(version)}"
    for condition in version.members:
        if isinstance(condition, Schedule):
            zone, moment, times = zoneinfo.ZoneInfo(condition.time_zone), now, list[str]()
            while len(times) < TIMES_SHOWN and (due := condition.next_due(moment)) is not None:
                moment = due
                local = due.astimezone(zone)
                times.append(f"{local:%a} {local.isoformat(' ', 'minutes')}")
            yield f"{condition.cron} {condition.time_zone}: next {', '.join(times) or 'never'}"


def next_text(rule: FoundRule, now: datetime) -> str:
    """The next scheduled time, the counts, and why a due firing is held back.

    Of a refused rule or one in quarantine, why it is.
    """
    if rule.standing in ("refused", "quarantined") and rule.status is not None:
        return rule.status.reason or ""
    if not rule.decides:
        return ""
    due, held = rule.next_at(now), rule.held_reason()
    times, reasons = [f"{minute(due)} UTC"] if due else [], [f"held: {held}"] if held else []
    return ", ".join(filter(None, [*times, *rule.counts(), *reasons, idle_text(rule, now)]))
