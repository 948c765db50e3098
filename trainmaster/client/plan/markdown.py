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

BLOCK_MAX_BYTES = 20_000
"""Of each of the three blocks of a page: GitHub refuses a comment of more than 65,536 characters."""
LINE_MAX_CHARS = 300


def plan_page(plan: Plan, last: RunRecord | None, now: datetime) -> str:
    """What the request would cost and what would happen first, and its difference to the last run of its model, if any.

    The page fits into one comment: a block that is too long says how many lines it leaves out.
    """
    page = _block("Plan", _lines([*plan_facts(plan), ("not looked at", [*plan.not_checked])]))
    if last is None or last.request is None:
        return page
    facts: list[Fact] = [("run", [last.run_id]), ("state", [state_text(last, now)])]
    facts += [*metric_facts(metrics_of(last)), *cost_facts(last, now)]
    before, asked = _yaml_lines(last.request.document), _yaml_lines(run_documents(plan.request)[0])
    changed = list(unified_diff(before, asked, "the last run", "this request", n=1, lineterm=""))
    return "\n".join(
        [
            page,
            _block("The last run of this model", _lines(facts)),
            _block("Difference", changed or ["The request is the same."], "diff"),
        ]
    )


def refusal_page(text: str) -> str:
    """The page of a request that the service would refuse, for the faults in the text."""
    return _block("The service would refuse this request", text.splitlines())


def _yaml_lines(document: object) -> list[str]:
    text: str = yaml.safe_dump(json.loads(json.dumps(document)), allow_unicode=True, width=LINE_MAX_CHARS)
    return text.splitlines()


def _lines(facts: Iterable[Fact]) -> Iterator[str]:
    for label, lines in facts:
        yield from (f"{'' if number else f'{label}:':15}{line}" for number, line in enumerate(lines))


def _block(heading: str, lines: Iterable[str], language: str = "text") -> str:
    """`heading`: our own words, not data."""
    every, kept, room = [one_line(line, LINE_MAX_CHARS) for line in lines], list[str](), BLOCK_MAX_BYTES
    for line in every:
        room -= len(line.encode()) + 1
        if room < 0:
            kept.append(f"… {plural(len(every) - len(kept), 'more line')}")
            break
        kept.append(line)
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", "\n".join(kept))), default=0))
    return "\n".join([f"### {heading}", "", f"{fence}{language}", *kept, fence, ""])
