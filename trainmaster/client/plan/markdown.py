"""A plan as a page of GitHub's Markdown, for a comment on a pull request. Pure.

Whatever is data stands in code, where GitHub renders no HTML and no links, and notifies no one of a name behind an `@`.
Source: https://github.github.com/gfm (code spans, fenced code blocks)
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from trainmaster.client.plan.difference import ChangedValue, changed_values
from trainmaster.client.plan.facts import plan_facts
from trainmaster.client.plan.plan import Plan
from trainmaster.client.runs.facts import state_of
from trainmaster.client.shown.cost_lines import cost_facts
from trainmaster.client.shown.run_lines import metric_facts
from trainmaster.client.submission.examination import Examination
from trainmaster.client.terminal import Fact, one_line, plural
from trainmaster.orchestrator.core.policy.currency import shown_bound
from trainmaster.orchestrator.core.runs.record import RunRecord, metrics_of

PART_MAX_BYTES = 25_000
"""Of each of the two parts of a page: GitHub refuses a comment of more than 65,536 characters."""
VALUE_MAX_CHARS = 300


def plan_page(examination: Examination, plan: Plan, last: RunRecord | None, now: datetime) -> str:
    """What the request may cost at most, what would happen first, its jobs, and how it differs from the last run.

    Args:
        examination: of the sound request.
        plan: of the same request.
        last: as `last_run` found it; None: the page says what it was not compared with.
        now: for the cost of a last run that has not ended.
    """
    facts = [fact for fact in plan_facts(plan) if fact[0] != "model"]
    bound = examination.bound
    if bound is not None and bound.at_most is not None:
        facts.insert(0, ("at most", [shown_bound(bound.at_most, bound.currency)]))
    facts.append(("not looked at", [*plan.not_checked]))
    head = f"### Plan of {_code(str(plan.request.get('model_name')))}"
    return "\n\n".join([head, _list(facts), *_comparison(plan, last, now)]) + "\n"


def refusal_page(title: str, lines: Iterable[str]) -> str:
    """Every line about a request that the service would refuse."""
    return f"### {_code(title)} would be refused\n\n{_block('text', [one for each in lines for one in each.splitlines()])}\n"


def _comparison(plan: Plan, last: RunRecord | None, now: datetime) -> Iterator[str]:
    if last is None:
        why = (
            "no service was asked"
            if plan.outlook is None
            else "there is no earlier run of it, or its request is not kept"
        )
        yield f"Compared with no run of this model: {why}."
        return
    yield f"#### Against the last run, {_code(last.run_id)}"
    yield _list([("state", [state_of(last)]), *metric_facts(metrics_of(last)), *cost_facts(last, now)])
    changed = changed_values(last, plan.request)
    if not changed:
        yield "The request is the same."
        return
    yield f"{plural(len(changed), 'changed value')} of the request:"
    yield _block("diff", [line for each in changed for line in _diff_lines(each)])


def _diff_lines(value: ChangedValue) -> Iterator[str]:
    for sign, text in (("-", value.before), ("+", value.now)):
        if text is not None:
            yield f"{sign} {one_line(f'{value.path}: {text}', VALUE_MAX_CHARS)}"


def _list(facts: Iterable[Fact]) -> str:
    return "\n".join(_bounded([f"- {label}: {', '.join(map(_code, lines))}" for label, lines in facts]))


def _code(text: str) -> str:
    """A code span of the text, on one line."""
    line = one_line(text, VALUE_MAX_CHARS).strip() or "-"
    fence = "`" * (_longest_ticks(line) + 1)
    return f"{fence}{line}{fence}" if len(fence) == 1 else f"{fence} {line} {fence}"


def _block(language: str, lines: Sequence[str]) -> str:
    kept = _bounded([one_line(line, VALUE_MAX_CHARS) for line in lines])
    fence = "`" * max(3, _longest_ticks("\n".join(kept)) + 1)
    return "\n".join([f"{fence}{language}", *kept, fence])


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _bounded(lines: Sequence[str]) -> list[str]:
    """The first lines that have room, and how many more there are."""
    kept, room = list[str](), PART_MAX_BYTES
    for number, line in enumerate(lines):
        room -= len(line.encode()) + 1
        if room < 0:
            return [*kept, f"… {plural(len(lines) - number, 'more line')}"]
        kept.append(line)
    return kept
