"""A plan as a page of GitHub's Markdown, for a comment on a pull request. Pure.

All text is in fenced code blocks, where GitHub renders no HTML and no links, and notifies no one of a name behind an `@`.
Source: https://github.github.com/gfm/#fenced-code-blocks
"""

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import unified_diff

import yaml

from trainmaster.client.plan.facts import plan_facts
from trainmaster.client.plan.plan import Plan
from trainmaster.client.shown.cost_lines import cost_facts
from trainmaster.client.shown.run_lines import metric_facts
from trainmaster.client.shown.run_screen import state_text
from trainmaster.client.terminal import Fact, one_line, plural
from trainmaster.orchestrator.core.requests.matrix import run_documents
from trainmaster.orchestrator.core.runs.record import RunRecord, metrics_of

LINES_MAX, LINE_MAX_CHARS = 100, 200
"""Of a block. A page has three, and GitHub refuses a comment of more than 65,536 characters."""


def plan_page(plan: Plan, last: RunRecord | None, now: datetime) -> str:
    """What the request would cost and what would happen first, and its difference to the last run of its model, if any."""
    page = block("Plan", _lines([*plan_facts(plan), ("not looked at", [*plan.not_checked])]))
    if last is None or last.request is None:
        return page
    facts: list[Fact] = [("run", [last.run_id]), ("state", [state_text(last, now)])]
    facts += [*metric_facts(metrics_of(last)), *cost_facts(last, now)]
    before, asked = map(_yaml_lines, (last.request.document, run_documents(plan.request)[0]))
    changed = list(unified_diff(before, asked, "the last run", "this request", n=1, lineterm=""))
    difference = block("Difference", changed or ["The request is the same."], "diff")
    return "\n".join([page, block("The last run of this model", _lines(facts)), difference])


def _yaml_lines(document: object) -> list[str]:
    text: str = yaml.safe_dump(json.loads(json.dumps(document)), allow_unicode=True, width=LINE_MAX_CHARS)
    return text.splitlines()


def _lines(facts: Iterable[Fact]) -> Iterator[str]:
    for label, lines in facts:
        yield from (f"{'' if number else f'{label}:':15}{line}" for number, line in enumerate(lines))


def block(heading: str, lines: Iterable[str], language: str = "text") -> str:
    """Lines of any text below our heading; the last says how many have no room."""
    every = [one_line(line, LINE_MAX_CHARS) for line in lines]
    left_out = [f"… {plural(len(every) - LINES_MAX, 'more line')}"] if len(every) > LINES_MAX else []
    kept = [*every[:LINES_MAX], *left_out]
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", "\n".join(kept))), default=0))
    return "\n".join([f"### {heading}", "", f"{fence}{language}", *kept, fence, ""])
