"""Doubts about a sound rule: what it does may not be what its author meant. Pure."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.retraining.condition import Condition, Schedule, placed_members
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule, WhileRunning
from trainmaster.orchestrator.core.retraining.times.schedule import FIELDS, five_fields, next_due

_MEANT_OTHERWISE = re.compile(r"[?\[{\\]")
"""Wildcards and escapes of other patterns."""
_WEEKS = {"1-7": ("first", 1), "8-14": ("second", 2), "15-21": ("third", 3), "22-28": ("fourth", 4)}
_OF_ONE = ("data.newest_uri", "data.newest_dir_uri")
_OF_ALL = ("data.manifest_uri", "data.dirs", "data.since")


def rule_doubts(rule: Rule) -> Iterator[Fault]:
    """The warnings about the rule, each with what to write instead."""
    for path, member in _members(rule):
        yield from _condition_doubts(member, path)
    yield from _data_doubts(rule)
    for index, window in enumerate(rule.blackout):
        for problem, repair in cron_doubts(window.cron) if window.cron else ():
            yield Fault(at=("blackout", index, "cron"), problem=problem, value=window.cron, repair=repair)
    for window in rule.blackout:
        begun = window.since or next_due(window.cron, window.time_zone, datetime(2026, 1, 1, tzinfo=UTC))
        end = rule.free_from(begun) if begun is not None else None
        if end is not None and any(other.open_until(end) for other in rule.blackout):
            yield Fault(
                at=("blackout",),
                problem="the windows follow each other without a gap, so the rule may never fire",
                repair="make for_s shorter than the time to the next window",
            )
            return


def _members(rule: Rule) -> Iterator[tuple[tuple[PathPart, ...], Condition]]:
    """Every condition with its place, those inside `all` too."""
    for number, condition in enumerate(rule.conditions):
        yield from placed_members(condition, ("when", number, condition.kind))


def _condition_doubts(condition: Condition, path: tuple[PathPart, ...]) -> Iterator[Fault]:
    match condition:
        case Schedule():
            for problem, repair in cron_doubts(condition.cron):
                yield Fault(at=(*path, "cron"), problem=problem, value=condition.cron, repair=repair)
        case NewData() if found := _MEANT_OTHERWISE.search(condition.objects):
            problem = f"{found[0]} stands for itself in a pattern, so an object's name must have it"
            repair = "write * for any characters but /, and ** for any characters"
            yield Fault(at=(*path, "objects"), problem=problem, value=condition.objects, repair=repair)


def cron_doubts(cron: str) -> Iterator[tuple[str, str]]:
    """What a readable expression may not mean as it was meant, each with what to write instead."""
    fields = five_fields(cron).upper().split()
    day, weekday = fields[2], fields[4]
    if not (day.startswith("*") or weekday.startswith("*")):
        is_week = day in _WEEKS and re.fullmatch(r"\w+", weekday) is not None
        (name, number), only = (_WEEKS[day], weekday) if is_week else (("first", 1), "MON")
        meant = " ".join([*fields[:2], "*", fields[3], f"{only}#{number}"])
        problem = (
            "cron fires on each of these days of the month, and on each of these days of the week as well"
        )
        yield problem, f"for the {name} {only} of a month alone, write {meant!r}"
    for name, text in zip(FIELDS, fields, strict=True):
        step, least = re.fullmatch(r"\*/(\d+)", text), FIELDS[name][0]
        if step and int(step[1]) >= len(FIELDS[name]):
            yield (
                f"a step of {step[1]} leaves only {least} of the {name}s",
                f"write {least}, if that is meant",
            )


def _data_doubts(rule: Rule) -> Iterator[Fault]:
    """What the runs of a rule for new data do not learn, or do not finish."""
    used = [name for name in _OF_ONE if _uses(rule, name)]
    for at, condition in _members(rule):
        if not isinstance(condition, NewData):
            continue
        value = condition.objects
        if condition.each is None and used and not any(_uses(rule, name) for name in _OF_ALL):
            problem = f"a firing may take objects of several folders, and of these ${{{used[0]}}} names one"
            repair = "use ${data.manifest_uri} or ${data.dirs}, or write each: folder"
            yield Fault(at=at, problem=problem, value=value, repair=repair)
        if condition.each is not None and rule.while_running is WhileRunning.REPLACE:
            problem = (
                "with while_running: replace, the firing for a folder ends the run for the folder before"
            )
            repair = "leave out while_running; folders stay due until the run has ended"
            yield Fault(at=at, problem=problem, value=value, repair=repair)


def _uses(rule: Rule, name: str) -> bool:
    return any(placeholder.name == name for placeholder in rule.placeholders)
