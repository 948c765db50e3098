"""Lists runs from their index: one storage operation for the first page, one for each thousand runs behind a filter."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from typing import Any, Self

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused
from trainmaster.client.runs.columns import Order
from trainmaster.client.runs.facts import TIMED_OUT, state_of
from trainmaster.orchestrator.core.documents.codec import encoded, encoded_time
from trainmaster.orchestrator.core.policy.policy import glob_matches
from trainmaster.orchestrator.core.runs.index import (
    INDEX_PREFIX,
    IndexRow,
    bounded_metrics,
    index_object,
    parse_row,
)
from trainmaster.orchestrator.core.runs.job import Progress

RUN_LIST_SCHEMA = "run_list.v1"
PAGE_SIZE = 1000
"""The most objects in one response: https://cloud.google.com/storage/docs/json_api/v1/objects/list (read 2026-11-23)."""
SCANNED_MAX = 20_000
"""Objects of the index that one call reads at most: 20 storage operations."""
SETTLED_AFTER = timedelta(hours=1)
"""After this time, the row of a run that has ended counts as final."""
TEXT_MAX_CHARS = 200
_FIELDS = "items(name,metadata),nextPageToken"
_MICROSECOND = timedelta(microseconds=1)
_FIRST_PRINTABLE = " "  # behind a name, it sorts before every row after that name
_BEHIND_ALL = "~"


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which runs are listed. Every filter must match; without any, all runs are listed."""

    states: frozenset[str] = frozenset()
    """Any of these states, or `timed_out`, which is a kind of `cancelled`; empty for all."""
    model: str | None = None
    """The model's name; `*` stands for any characters."""
    team: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    """In the run's id, its model's name, its source or its reason, in any case; at most TEXT_MAX_CHARS of it are compared."""
    since: datetime | None = None
    """Runs that were recorded then or later."""
    before: datetime | None = None
    """Runs that were recorded earlier than that."""
    by: str | None = None
    """In the name of who sent the request, in any case."""
    commit: str | None = None
    """The beginning of the commit's id."""
    group: str | None = None
    """The id of a group."""

    @property
    def by_content(self) -> bool:
        """Whether rows in the period may be left out."""
        return replace(self, since=None, before=None) != Filters()

    def matches(self, row: IndexRow) -> bool | None:
        """Whether the run is listed, but for its time; None if its labels decide, and the row leaves some out."""
        return (
            (not self.states or not self.states.isdisjoint({row.state, state_of(row)}))
            and (self.team is None or row.team == self.team)
            and (not self.group or row.group == self.group)
            and (
                self.model is None
                or (row.model_name is not None and glob_matches(self.model, row.model_name))
            )
            and (not self.by or self.by.casefold() in (row.sent_by or "").casefold())
            and (not self.commit or (row.commit or "").startswith(self.commit.lower()))
            and self._has_text(row)
            and self.labels_match(row)
        )

    def in_period(self, row: IndexRow) -> bool:
        """Whether the run was recorded in the requested time."""
        return (self.since is None or row.created_at >= self.since) and (
            self.before is None or row.created_at < self.before
        )

    def _has_text(self, row: IndexRow) -> bool:
        searched = (self.text or "")[:TEXT_MAX_CHARS].casefold()
        texts = (row.run_id, row.model_name, row.source, row.reason)
        return not searched or any(searched in text.casefold() for text in texts if text is not None)

    def labels_match(self, row: IndexRow) -> bool | None:
        """Whether the run has the labels; None if the row leaves out labels that may be among them."""
        present = {key: row.labels[key] for key in self.labels if key in row.labels}
        if present == self.labels:
            return True
        if any(value != self.labels[key] for key, value in present.items()) or not row.labels_left_out:
            return False
        return None


@dataclass(frozen=True, kw_only=True)
class RunList:
    """Runs, newest first."""

    rows: tuple[IndexRow, ...]
    scanned: int
    """How many objects of the index were read."""
    undecided: int = 0
    """Runs that may have the labels: their rows leave some out. They are not in the list."""
    next_before: datetime | None = None
    """The `before` that continues the list; None if it is complete."""
    bound_reached: bool = False
    """The list ends because as many objects were read as one call may read; more runs may match."""
    left_out: int = 0
    """Runs that match and come later in the order of the list; only a sorted list has them."""

    def with_progress(self, progress: Mapping[str, Progress], order: Order | None = None) -> Self:
        """The list with what is known of some runs, by id; their metrics count if it has no order and the index has none."""
        reached = ((row, progress.get(row.run_id, Progress())) for row in self.rows)
        rows = (
            replace(
                row,
                progress_percentage=known.progress_percentage,
                metrics=row.metrics if order else row.metrics or bounded_metrics(known.metrics or {}),
            )
            for row, known in reached
        )
        return replace(self, rows=tuple(rows))

    @property
    def document(self) -> dict[str, Any]:
        """schemas/run_list.v1.schema.json."""
        return {
            "schema": RUN_LIST_SCHEMA,
            "runs": [_document(row) for row in self.rows],
            "scanned": self.scanned,
            "undecided": self.undecided,
            "bound_reached": self.bound_reached,
            **({"left_out": self.left_out} if self.left_out else {}),
            **({} if self.next_before is None else {"next_before": encoded_time(self.next_before)}),
        }


def _document(row: IndexRow) -> dict[str, Any]:
    document: Any = encoded(row)
    return {**document, **({TIMED_OUT: True} if state_of(row) == TIMED_OUT else {})}


def parse_labels(texts: Sequence[str]) -> dict[str, str]:
    """The labels of `--label`, in texts of the form KEY=VALUE.

    Raises:
        ClientRefused: one has another form.
    """
    pairs = [text.partition("=") for text in texts]
    if any(not key or not separator for key, separator, _ in pairs):
        raise ClientRefused(f"--label: expected KEY=VALUE, found {', '.join(texts)}")
    return {key: value for key, _, value in pairs}


def list_runs(clients: Clients, filters: Filters, *, limit: int, scanned_max: int | None = None) -> RunList:
    """The newest `limit` runs that match, among `scanned_max` objects of the index, by default SCANNED_MAX.

    Reads no record.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the index cannot be listed.
    """
    most = SCANNED_MAX if scanned_max is None else min(scanned_max, SCANNED_MAX)
    objects = _index_objects(clients, filters, first_page=PAGE_SIZE if filters.by_content else limit + 1)
    return _first_matches(map(_row_of, objects), filters, limit=limit, most=most)


def filter_runs(index: RunList, filters: Filters, *, limit: int) -> RunList | None:
    """As `list_runs`, without reading anything. None if the index has more, and the filters continue a list."""
    if index.bound_reached and filters.before is not None:
        return None
    rows = [row for row in index.rows if filters.in_period(row)]
    # The last row of a part says where the list continues.
    is_part = index.bound_reached and len(rows) == len(index.rows)
    return _first_matches(iter(rows), filters, limit=limit, most=len(rows) - is_part)


def _first_matches(rows: Iterator[IndexRow | None], filters: Filters, *, limit: int, most: int) -> RunList:
    """The first `limit` runs that match, among `most` objects, with None for each that is not a row."""
    kept, scanned, undecided = list[IndexRow](), 0, 0
    last: datetime | None = None
    for row in rows:
        is_full = len(kept) == limit and row is not None
        if is_full or scanned == most:
            return RunList(
                rows=tuple(kept),
                scanned=scanned,
                undecided=undecided,
                # A microsecond later than the first row that is left out, so that no row of the same time is lost.
                next_before=row.created_at + _MICROSECOND if row is not None else last,
                bound_reached=not is_full,
            )
        scanned += 1
        if row is not None:
            last, is_match = row.created_at, filters.matches(row)
            kept += [row] if is_match else []
            undecided += is_match is None
    return RunList(rows=tuple(kept), scanned=scanned, undecided=undecided)


class KeptIndex:
    """The newest SCANNED_MAX rows of the index, kept between looks: only what may have changed since is read again."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._rows: dict[str, IndexRow | None] = {}
        self._is_whole = False

    def look(self, most: int = SCANNED_MAX) -> RunList:
        """All rows, with at most that many older ones than the last look had; `bound_reached` if there may be more.

        Costs an operation for each thousand of these, and for what may have changed since in most cases one.
        """
        settled_from, bound = self._settled_from(), min(len(self._rows) + most, SCANNED_MAX)
        rows = self._read(None, settled_from, bound)
        rows |= {name: row for name, row in self._rows.items() if name >= settled_from}
        if settled_from != _BEHIND_ALL and not self._is_whole:
            rows |= self._read(next(reversed(rows)), _BEHIND_ALL, bound - len(rows))
        self._is_whole = self._is_whole or len(rows) < bound
        self._rows = dict(islice(rows.items(), SCANNED_MAX))
        found = tuple(row for row in self._rows.values() if row is not None)
        is_whole = self._is_whole and len(rows) <= SCANNED_MAX
        return RunList(rows=found, scanned=len(found), bound_reached=not is_whole)

    def _read(self, after: str | None, until: str, most: int) -> dict[str, IndexRow | None]:
        found = _index_objects(self._clients, Filters(), first_page=PAGE_SIZE, after=after)
        named = takewhile(lambda blob: blob.name < until, islice(found, max(most, 0)))
        return {blob.name: _row_of(blob) for blob in named}

    def _settled_from(self) -> str:
        """The name from which on no row changes any more, or a name behind all."""
        first, long_ago = _BEHIND_ALL, datetime.now(UTC) - SETTLED_AFTER
        for name, row in reversed(self._rows.items()):
            if row is not None and (row.ended_at is None or row.updated_at > long_ago):
                break
            first = name
        return first


def sort_runs(index: RunList, filters: Filters, order: Order, *, limit: int) -> RunList:
    """The first `limit` runs that match, in this order."""
    verdicts = [(row, filters.matches(row)) for row in index.rows if filters.in_period(row)]
    found = order.sort(row for row, is_match in verdicts if is_match)
    return RunList(
        rows=tuple(found[:limit]),
        scanned=index.scanned,
        undecided=sum(is_match is None for _, is_match in verdicts),
        bound_reached=index.bound_reached,
        left_out=max(len(found) - limit, 0),
    )


def _index_objects(
    clients: Clients, filters: Filters, *, first_page: int, after: str | None = None
) -> Iterator[Any]:  # Any: untyped blobs
    """Every object of the index in the period, newest first, or behind the name `after`.

    The first page is small where it most likely suffices; the others are as large as the service allows, so that objects
    that cannot be read as a row cost no operations.
    """
    start = None if filters.before is None else _first_name(filters.before)
    start = start if after is None else f"{after}{_FIRST_PRINTABLE}"
    end = None if filters.since is None else _first_name(filters.since)

    def list_page(start: str | None, most: int | None) -> Any:
        return clients.storage.list_blobs(
            clients.context.ledger_bucket,
            prefix=INDEX_PREFIX,
            start_offset=start,
            end_offset=end,
            max_results=most,
            page_size=min(most or PAGE_SIZE, PAGE_SIZE),
            fields=_FIELDS,
        )

    last, count = None, 0
    for count, last in enumerate(list_page(start, first_page), 1):  # noqa: B007 - the last one is used below
        yield last
    if last is not None and count == first_page:
        yield from list_page(f"{last.name}{_FIRST_PRINTABLE}", None)


def _row_of(blob: Any) -> IndexRow | None:
    """The row that the object is. The property `metadata` would copy each: a quarter of the time of a long list."""
    return parse_row(blob.name, blob._properties.get("metadata") or {})  # noqa: SLF001 - as said


def _first_name(moment: datetime) -> str:
    """Sorts after every row of that time or later, and before all older ones."""
    return index_object(max(moment, datetime.min.replace(tzinfo=UTC) + _MICROSECOND) - _MICROSECOND, "")
