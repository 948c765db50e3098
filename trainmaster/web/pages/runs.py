"""The list of runs, with filters, and the comparison of several."""

import shlex
from collections.abc import Iterator
from datetime import datetime
from functools import partial

from trainmaster.client.runs.columns import FIELDS, Order, differing_columns, parse_order
from trainmaster.client.runs.facts import SHOWN_STATES
from trainmaster.client.runs.listing import (
    SCANNED_MAX,
    Filters,
    KeptIndex,
    RunList,
    filter_runs,
    list_runs,
    sort_runs,
)
from trainmaster.client.times import parse_since
from trainmaster.client.watch.now import read_progress
from trainmaster.web.faults import WrongQuery
from trainmaster.web.pages.comparison import RUNS_MAX
from trainmaster.web.source import INDEX, AnswerAge
from trainmaster.web.subject import ApiRoute, Ask, ConsolePage, ConsoleSubject, PageRoute, QueryParameter

LIMIT, LIMIT_MAX = 50, 1000
SEARCHED_MAX = 4_000
"""Runs that one view of the page searches with a filter: four storage operations, and a fraction of a second."""
VALUES_MAX = 20
"""Of `state` and of `label` in one query."""
_FILTERS = ("state", "model", "label", "by", "commit", "group", "text", "since", "before", "team")
_TEXTS = ("model", "text", "by", "commit", "group", "since", "team", "limit", "sort")


def runs(ask: Ask, notice: str = "") -> ConsolePage:
    """The runs that match the query, newest first; or what is wrong with the query, beside the filters.

    `notice`, what is wrong with another query, is shown above the list.
    """
    try:
        if not notice:  # with one, the query is another page's
            ask.refuse_unknown([each.name for each in PARAMETERS])
        found, order, problem = _read_list(ask, scanned_max=SEARCHED_MAX), _order(ask), ""
    except WrongQuery as wrong:
        found, order, problem = RunList(rows=(), scanned=0), None, str(wrong)
    columns = differing_columns(found.rows, order)
    values = {
        "found": found,
        "problem": problem,
        "notice": notice,
        "query": {name: ask.query.get(name, "") for name in _TEXTS},
        "columns": columns,
        "order": order,
        "addresses": {
            name: _sort_address(ask, name, order) for name in (*FIELDS, *(each.name for each in columns))
        },
        "compared_max": RUNS_MAX,
        "labels": _given_values(ask, "label"),
        "states": [(each, each in _given_values(ask, "state")) for each in SHOWN_STATES],
        "has_filter": any(ask.query.get(name) for name in _FILTERS if name != "before"),
        "newest": ask.address("/runs", before=None) if ask.query.get("before") else None,
        "newest_first": ask.address("/runs", sort=None),
        "older": found.next_before and ask.address("/runs", before=found.next_before.isoformat()),
    }
    status = 400 if problem or notice else 200
    return ConsolePage(
        title="Runs", template="runs.html", values=values, command=_command(ask), status=status
    )


def _read_list(ask: Ask, *, scanned_max: int | None) -> RunList:
    limit = ask.whole("limit", LIMIT, LIMIT_MAX)
    filters, order = filters_of(ask), _order(ask)
    if order is not None or filters.by_content:
        index = read_index(ask, most=scanned_max)
        in_order = None if order is None else sort_runs(index, filters, order, limit=limit)
        among = filter_runs(index, filters, limit=limit) if in_order is None else in_order
        if among is not None:
            return _with_progress(ask, among, order)
    key = ("runs", limit, scanned_max, *((name, *_given_values(ask, name)) for name in _FILTERS))
    is_newest = not filters.by_content and filters.before is None
    found = ask.source.read(
        key,
        AnswerAge.LIVE if is_newest else AnswerAge.SLOW,
        lambda clients: list_runs(clients, filters, limit=limit, scanned_max=scanned_max),
    )
    return _with_progress(ask, found)


def read_index(ask: Ask, *, most: int | None = None) -> RunList:
    """The rows of the index: only the newest `most` if none were read yet. Pages ask again, and then get the others."""
    if most is not None:
        return ask.source.follow(INDEX, AnswerAge.SLOW, KeptIndex, partial(KeptIndex.look, most=most))
    found = ask.source.follow(INDEX, AnswerAge.SLOW, KeptIndex, KeptIndex.look)
    is_part = found.bound_reached and found.scanned < SCANNED_MAX
    return ask.source.follow(INDEX, AnswerAge.NOW, KeptIndex, KeptIndex.look) if is_part else found


def _with_progress(ask: Ask, found: RunList, order: Order | None = None) -> RunList:
    key = ("progress", *((row.run_id, row.state) for row in found.rows))
    read = ask.source.read(key, AnswerAge.SLOW, lambda clients: read_progress(clients, found.rows))
    return found.with_progress(read, order)


def _order(ask: Ask) -> Order | None:
    try:
        return parse_order(ask.query.get("sort", ""))
    except ValueError as error:
        raise WrongQuery(f"sort: {error}") from error


def _sort_address(ask: Ask, name: str, order: Order | None) -> str:
    """The address of the list in the order of this column: first the largest, and then the smallest."""
    is_again = order is not None and order.name == name and order.is_descending
    return ask.address("/runs", sort=name if is_again else f"-{name}", before=None)


def filters_of(ask: Ask) -> Filters:
    """The filters in the query; empty values are none.

    Raises:
        WrongQuery: some values are wrong; the message has each.
    """
    faults: list[str] = []
    filters = Filters(
        states=frozenset(_states(_given_values(ask, "state"), faults)),
        model=ask.query.get("model") or None,
        team=ask.query.get("team") or None,
        labels=dict(_labels(_given_values(ask, "label"), faults)),
        text=ask.query.get("text") or None,
        by=ask.query.get("by") or None,
        commit=ask.query.get("commit") or None,
        group=ask.query.get("group") or None,
        since=_time(ask, "since", faults),
        before=_time(ask, "before", faults),
    )
    if faults:
        raise WrongQuery("\n".join(faults))
    return filters


def _given_values(ask: Ask, name: str) -> list[str]:
    """The values of the query that are not empty, stripped, at most VALUES_MAX."""
    stripped = (each.strip() for each in ask.query.getlist(name))
    return [each for each in stripped if each][:VALUES_MAX]


def _states(texts: list[str], faults: list[str]) -> Iterator[str]:
    for text in texts:
        if text in SHOWN_STATES:
            yield text
        else:
            faults.append(f"state: expected one of {', '.join(SHOWN_STATES)}, found {text[:40]!r}")


def _labels(texts: list[str], faults: list[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        key, equals, value = text.partition("=")
        if key and equals:
            yield key, value
        else:
            faults.append(f"label: expected KEY=VALUE, found {text[:40]!r}")


def _time(ask: Ask, name: str, faults: list[str]) -> datetime | None:
    text = ask.query.get(name, "").strip()
    try:
        return parse_since(text[:100], ask.now) if text else None
    except ValueError as error:
        faults.append(f"{name}: {error}")
        return None


def _command(ask: Ask) -> str:
    """`trainmaster ls` with the same filters."""
    words = ["trainmaster", "ls"]
    for name in (*_FILTERS, "sort"):
        for value in _given_values(ask, name):
            words += [f"--{name}", value]
    return shlex.join([*words, "--limit", ask.query.get("limit") or str(LIMIT)])


PARAMETERS = (
    QueryParameter(name="state", description="only in one of these states", repeated=True),
    QueryParameter(name="model", description="only of this model; * stands for any characters"),
    QueryParameter(name="team", description="only of this team"),
    QueryParameter(name="label", description="only with this label: KEY=VALUE", repeated=True),
    QueryParameter(name="by", description="only sent by someone with this text in the name"),
    QueryParameter(name="commit", description="only from the git commit whose id begins so"),
    QueryParameter(name="group", description="only the runs of this group, which a matrix started"),
    QueryParameter(
        name="text", description="only with this text in the run's id, model, source or reason, in any case"
    ),
    QueryParameter(name="since", description="recorded since then: 2h, 7d, 2026-11-01 or a time"),
    QueryParameter(name="before", description="recorded before that time; `next_before` continues a list"),
    QueryParameter(name="limit", description=f"the most runs, {LIMIT} by default", is_number=True),
    QueryParameter(
        name="sort",
        description=f"by a metric, an argument, {', '.join(FIELDS)}; with - before it the largest first",
    ),
)
SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/runs", show=runs)],
    api=[
        ApiRoute(
            path="/runs",
            summary="The newest runs that match every filter.",
            read=lambda ask: _read_list(ask, scanned_max=None).document,
            schema="run_list.v1",
            parameters=PARAMETERS,
        )
    ],
)
