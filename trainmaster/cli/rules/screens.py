"""The screens of `rules ls` and `rules show`."""

from collections.abc import Iterable
from datetime import datetime

import click

from trainmaster.cli.table import print_facts, print_table, terminal_width
from trainmaster.cli.yaml_text import yaml_text
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.shown.rule_lines import next_text, rule_facts, when_text
from trainmaster.client.terminal import one_line
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
    when = when_text(rule.rule) if rule.rule else ""
    return {
        "RULE": one_line(rule.name),
        "STATE": rule.standing,
        "NEXT": one_line(next_text(rule, now), most) or ABSENT,
        "WHEN": one_line(when, most) or ABSENT,
        "FIRED": f"{minute(last.at)} UTC" if last else ABSENT,
        "LAST RUN": last.run_id if last else ABSENT,
    }


def print_rule(rule: FoundRule, now: datetime) -> None:
    """The rule's standing, what it waits for, and its document as YAML."""
    print_facts(rule_facts(rule, now))
    if rule.rule is not None:
        click.echo()
        click.echo(yaml_text(dict(rule.rule.document)), nl=False)
