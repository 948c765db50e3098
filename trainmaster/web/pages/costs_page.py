"""What runs have cost, by model, team, user or label."""

import shlex
from dataclasses import replace
from datetime import timedelta

from trainmaster.client.runs.costs import BY, Costs, read_costs
from trainmaster.client.runs.listing import Filters
from trainmaster.client.shown.cost_lines import group_columns
from trainmaster.web.faults import WrongQuery
from trainmaster.web.pages.runs import filters_of
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute, QueryParameter

ROWS_MAX = 200
DAYS = 30
PARAMETERS = (
    QueryParameter(name="by", description=f"one of {', '.join(BY)}; model by default"),
    QueryParameter(
        name="since", description="runs recorded since then: 7d, 2026-11-01 or a time; 30d by default"
    ),
    QueryParameter(name="before", description="runs recorded before that time; `next_before` continues"),
)


def costs(ask: Ask) -> ConsolePage:
    """The groups, the dearest first; or what is wrong with the query, beside the choices."""
    try:
        found, problem = read(ask), ""
    except WrongQuery as wrong:
        found, problem = Costs(by=BY[0]), str(wrong)
    by, since = ask.query.get("by") or BY[0], ask.query.get("since") or f"{DAYS}d"
    values = {
        "problem": problem,
        "rows": [group_columns(group, found.by) for group in found.groups[:ROWS_MAX]],
        "totals": [group_columns(group, found.by) for group in found.total],
        "left_out": max(len(found.groups) - ROWS_MAX, 0),
        "older": found.next_before and ask.address("/costs", before=found.next_before.isoformat()),
        "scanned": found.scanned,
        "choices": [(each, ask.address("/costs", by=each, before=None), each == by) for each in BY],
    }
    words = ["trainmaster", "costs", "--by", by, "--since", since]
    status = 400 if problem else 200
    return ConsolePage(
        title="Costs", template="costs.html", values=values, command=shlex.join(words), status=status
    )


def read(ask: Ask) -> Costs:
    """The costs that the query asks for.

    Raises:
        WrongQuery: some values are wrong; the message has each.
    """
    ask.refuse_unknown([each.name for each in PARAMETERS])
    by, faults, filters = ask.query.get("by") or BY[0], list[str](), Filters()
    if by not in BY:
        faults.append(f"by: expected one of {', '.join(BY)}, found {by[:40]!r}")
    try:
        filters = replace(filters_of(ask), by=None)  # here `by` names the groups
    except WrongQuery as wrong:
        faults.append(str(wrong))
    if faults:
        raise WrongQuery("\n".join(faults))
    filters = replace(filters, since=filters.since or ask.now - timedelta(days=DAYS))
    key = ("costs", *(ask.query.get(each.name, "") for each in PARAMETERS))
    return ask.source.read(key, AnswerAge.RARE, lambda clients: read_costs(clients, by, filters))


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/costs", show=costs)],
    api=[
        ApiRoute(
            path="/costs",
            summary="What runs have cost, and those that have not ended may still cost, by model, team, user or label.",
            read=lambda ask: read(ask).document,
            schema="costs.v1",
            parameters=PARAMETERS,
        )
    ],
)
