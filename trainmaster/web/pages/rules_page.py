"""Rules: what each waits for and how much of it there is, why it is held back, and what it has fired."""

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from trainmaster.client.rules.changing import fire_refusal, pause_refusal
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.client.rules.listing import RuleFile, list_rules, read_rule_file
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.shown.rule_lines import idle_text, standing_reasons, version_facts
from trainmaster.client.shown.run_lines import reported_faults
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import split_lines
from trainmaster.orchestrator.core.names import run_id_at
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.web.pages.rule_changes import (
    NO_ID,
    address_of,
    change_enabled,
    fire,
    propose_enabled,
    propose_firing,
    rule_of,
)
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import (
    ApiRoute,
    Ask,
    ConsoleAction,
    ConsolePage,
    ConsoleSubject,
    PageRoute,
    QueryParameter,
)

ROWS_MAX = 500
"""Rules on the page; the document has all."""
NAME_MAX_CHARS = 200
LINES_MAX, LINE_MAX_CHARS = 1500, 400
"""Of a rule's file: its size bounds it to far fewer, unless most lines are empty."""
RUNS_SCANNED, RUNS_SHOWN = 1000, 10
"""The newest runs, that are searched for a rule's firings, and how many of these are shown."""


def rules(ask: Ask) -> ConsolePage:
    """Every rule, with its conditions and why it is held back."""
    found = ask.source.read("rules", AnswerAge.SLOW, list_rules)
    rows = [_row(each, ask) for each in found[:ROWS_MAX]]
    return ConsolePage(
        title="Rules",
        template="rules.html",
        values={"rows": rows, "left_out": max(len(found) - ROWS_MAX, 0)},
        command="trainmaster rules ls",
    )


def _row(rule: FoundRule, ask: Ask) -> dict[str, Any]:
    """One rule as a row. `not_fired`: why an accepted one has no button Fire, where its state does not say so."""
    return {
        "rule": rule,
        "name": one_line(rule.name, NAME_MAX_CHARS),
        "address": address_of(rule),
        "awaited": list(rule.awaited(ask.now)),
        "reasons": list(_reasons(rule, ask)),
        "changes": list(_changes(rule)),
        "not_fired": one_line(fire_refusal(rule), NAME_MAX_CHARS) if rule.decides else "",
    }


def _changes(rule: FoundRule) -> Iterator[tuple[str, str]]:
    """What may be done with it now: the last part of the action's address, and the button's text."""
    if rule.rule_id is None:
        return
    if not fire_refusal(rule):
        yield "fire", "Fire"
    if not pause_refusal(rule, enabled=False):
        yield "pause", "Pause"
    if not pause_refusal(rule, enabled=True):
        yield "resume", "Resume"


def _reasons(rule: FoundRule, ask: Ask) -> Iterator[str]:
    """Why the rule does not fire."""
    yield from standing_reasons(rule)
    if reason := rule.held_reason():
        yield f"held back: {reason}"
    if idle := idle_text(rule, ask.now):
        yield idle


def rule(ask: Ask) -> ConsolePage:
    """One rule, with its file and the places of its faults."""
    found = rule_of(ask)
    file = ask.source.read(
        ("rule-file", found.dropped_name, found.status and found.status.generation),
        AnswerAge.SLOW,
        lambda clients: read_rule_file(clients, found),
    )
    faults = reported_faults(found.status.faults or () if found.status else ())
    lines = list(_lines(file, faults, as_json=found.dropped_name.lower().endswith(".json")))
    problems = (found.status.problems if found.status else None) or ()
    marked = {text for _, _, on_line in lines for text in on_line}
    return ConsolePage(
        title=one_line(found.name, NAME_MAX_CHARS),
        template="rule.html",
        values={
            "row": _row(found, ask),
            "reasons": [reason for reason in _reasons(found, ask) if not faults or reason not in problems],
            "facts": list(version_facts(found)),
            "file": file,
            "lines": lines,
            "faults": [str(fault) for fault in faults if str(fault) not in marked],
            "firings": _firings(found, ask),
        },
        command=f"trainmaster rules show {shlex.quote(found.name)}",
    )


def _lines(
    file: RuleFile | None, faults: list[Fault], *, as_json: bool
) -> Iterator[tuple[int, str, Sequence[str]]]:
    """The lines by number, each cut to LINE_MAX_CHARS, with the faults that are on it."""
    if file is None:
        return
    by_line: dict[int, list[str]] = {}
    for fault in faults:
        if fault.place is not None and file.is_judged:
            by_line.setdefault(fault.place.line, []).append(str(fault))
    texts = split_lines(file.text.rstrip(), as_json=as_json)
    for number, text in enumerate(texts[:LINES_MAX], 1):
        shown = one_line(text.expandtabs(), LINE_MAX_CHARS)
        yield number, shown, by_line.get(number, ())


def _firings(rule: FoundRule, ask: Ask) -> list[IndexRow]:
    """Runs that the rule started, newest first, among the newest of its model."""
    if rule.rule is None or rule.rule_id is None:
        return []
    filters = Filters(model=rule.rule.model_name, team=rule.rule.team)
    found = ask.source.read(
        ("firings", filters.model, filters.team),
        AnswerAge.SLOW,
        lambda clients: list_runs(clients, filters, limit=RUNS_SCANNED, scanned_max=RUNS_SCANNED),
    )
    # A run's id begins with what started it and the time.
    prefix = run_id_at(rule.rule_id, ask.now, "").rpartition("-")[0].rpartition("-")[0] + "-"
    return [row for row in found.rows if row.source == "rule" and row.run_id.startswith(prefix)][:RUNS_SHOWN]


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/rules", show=rules), PageRoute(path="/rules/{rule_id}", show=rule)],
    api=[
        ApiRoute(
            path="/rules",
            summary="Every rule, as an array of rule_view.v1.",
            read=lambda ask: [
                each.document(ask.now) for each in ask.source.read("rules", AnswerAge.SLOW, list_rules)
            ],
        ),
        ApiRoute(
            path="/rules/{rule_id}",
            summary="One rule: its file's status, the version in force, and what it remembers.",
            read=lambda ask: rule_of(ask).document(ask.now),
            schema="rule_view.v1",
            parameters=[
                QueryParameter(
                    name="file", description=f"with {NO_ID} as the rule: the name of its file below rules/"
                )
            ],
        ),
    ],
    actions=[
        ConsoleAction(
            path="/rules/{rule_id}/fire", summary="Fires a rule now.", propose=propose_firing, perform=fire
        ),
        ConsoleAction(
            path="/rules/{rule_id}/pause",
            summary="Stops a rule from firing.",
            propose=partial(propose_enabled, enabled=False),
            perform=partial(change_enabled, enabled=False),
        ),
        ConsoleAction(
            path="/rules/{rule_id}/resume",
            summary="Lets a paused rule fire again.",
            propose=partial(propose_enabled, enabled=True),
            perform=partial(change_enabled, enabled=True),
        ),
    ],
)
