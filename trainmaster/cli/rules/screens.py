"""What `rules ls` and `rules show` print for people."""

from collections.abc import Iterable, Iterator
from datetime import datetime

import click

from trainmaster.cli.table import print_facts, print_table, terminal_width
from trainmaster.cli.yaml_text import yaml_text
from trainmaster.client.rules.found_rule import FoundRule, condition_text
from trainmaster.client.terminal import STATE, Fact, one_line
from trainmaster.client.times import minute

ABSENT = "-"
NARROW_CELL_CHARS = 34
"""Of a condition or a reason, on a terminal; a pipe has all of it."""
SPARE = ("LAST RUN", "FIRED", "WHEN", "NEXT")
"""Columns to leave out on a narrow terminal."""


def print_rules(rules: Iterable[FoundRule], now: datetime) -> None:
    """A line for each rule."""
    print_table(rule_rows(rules, now, is_cut=terminal_width() is not None), spare=SPARE)


def rule_rows(rules: Iterable[FoundRule], now: datetime, *, is_cut: bool) -> list[dict[str, str]]:
    """The rows of the list; with `is_cut`, long conditions and reasons are cut."""
    return [_row(rule, now, NARROW_CELL_CHARS if is_cut else None) for rule in rules]


def _row(rule: FoundRule, now: datetime, most: int | None) -> dict[str, str]:
    last = rule.status.last_firing if rule.status else None
    when = ", ".join(map(condition_text, rule.rule.conditions)) if rule.rule else ""
    return {
        "RULE": one_line(rule.name),
        "STATE": rule.standing,
        "NEXT": one_line(next_text(rule, now), most) or ABSENT,
        "WHEN": one_line(when, most) or ABSENT,
        "FIRED": f"{minute(last.at)} UTC" if last else ABSENT,
        "LAST RUN": last.run_id if last else ABSENT,
    }


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
    return ", ".join([*times, *rule.counts(), *reasons])


def print_rule(rule: FoundRule, now: datetime) -> None:
    """The rule's standing, what it waits for, and its document as YAML."""
    print_facts(rule_facts(rule, now))
    if rule.rule is not None:
        click.echo()
        click.echo(yaml_text(dict(rule.rule.document)), nl=False)


def rule_facts(rule: FoundRule, now: datetime) -> Iterator[Fact]:
    """Where the rule stands, and what comes next."""
    status, version = rule.status, rule.rule
    is_newer = status is not None and version is not None and status.generation != version.generation
    yield "rule", [rule.name]
    yield "file", [rule.dropped_name]
    yield STATE, [rule.standing, *(["the previous version is in force"] if is_newer and rule.decides else [])]
    if status is not None and (reasons := status.problems or (status.reason,)) != (None,):
        yield "reason", [reason for reason in reasons if reason]
    if version is not None:
        yield "model", [version.model_name]
        yield "when", [*map(condition_text, version.conditions)]
    if rule.decides:
        yield "next", [next_text(rule, now) or "when a condition is met"]
    if rule.state is not None:
        recent = f"{rule.state.number}, {len(rule.state.fired_at)} of them in the last 24 hours"
        yield "firings", [recent if rule.state.number else "none yet"]
    if status is not None and status.last_firing is not None:
        last = status.last_firing
        yield "last firing", [f"{minute(last.at)} UTC by {last.condition}: {last.run_id}"]
