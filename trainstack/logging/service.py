"""The Logging service without its wire protocol: entries, logs, sinks and metrics."""

import base64
import json
import threading
from collections.abc import Callable, Mapping, Sequence

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.instants import now_ns
from trainstack.logging.entry import EntryError, StoredEntry, complete_entry
from trainstack.logging.filters import PAGE_STEPS, FilterWork, parse_filter
from trainstack.logging.resources import (
    ExportSink,
    load_sink,
    message_of,
    metric_resource,
    new_resource,
    updated_resource,
)
from trainstack.logging.store import EntryPosition, LogStore
from trainstack.outbox import Outbox

RETENTION_NS = 30 * 24 * 3600 * 1_000_000_000
"""The retention of the service's default bucket."""


class LogService:
    """Entries, sinks and metrics over one store. Thread-safe."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self.outbox = Outbox(store)
        """The unpublished messages of each sink, by its full name."""
        self._sinks: dict[str, ExportSink] = {
            name: load_sink(name, resource) for name, resource in store.resources("sinks").items()
        }

    def write(
        self,
        entries: Sequence[object],
        defaults: Mapping[str, object] | None = None,
        *,
        partial_success: bool = False,
        dry_run: bool = False,
        permit: Callable[[str], None] | None = None,
    ) -> Mapping[int, str]:
        """Store the entries and the sinks' messages for them, in one step: on disk when this returns.

        `permit` is called first with each `projects/PROJECT` that entries are written to; it raises to refuse all of them.

        Returns the faults by the entry's position, counted from 0. With `partial_success`, valid entries are
        stored despite invalid ones, otherwise all or none. With `dry_run`, none are.
        """
        received_ns = now_ns()
        accepted: list[StoredEntry] = []
        faults: dict[int, str] = {}
        for index, given in enumerate(entries):
            try:
                accepted.append(complete_entry(given, defaults or {}, received_ns=received_ns))
            except EntryError as fault:
                faults[index] = str(fault)
        if permit:
            for parent in {entry.parent for entry in accepted}:
                permit(parent)
        if not dry_run and (partial_success or not faults):
            self._keep_entries(accepted)
        return faults

    def _keep_entries(self, entries: Sequence[StoredEntry]) -> None:
        sinks = list(self._sinks.values())
        owed = [
            (sink.full_name, entry)
            for entry in entries
            for sink in sinks
            if sink.parent == entry.parent and sink.exports(entry)
        ]
        # An entry older than that is exported, and not stored: https://cloud.google.com/logging/quotas
        oldest_ns = now_ns() - RETENTION_NS
        with self._store.transaction():
            self._store.add([entry for entry in entries if entry.timestamp_ns >= oldest_ns])
            for name, entry in owed:
                self.outbox.owe(name, *message_of(entry))
        if owed:
            self.outbox.wake()

    def list(
        self, parents: Sequence[str], filter_text: str, *, descending: bool, page_size: int, page_token: str
    ) -> tuple[Sequence[Mapping[str, object]], str]:
        """One page of the matching entries, in order of time, and the token of the next page.

        As in the cloud, a page may be empty and still have a next one: where it did not have time to look through all
        entries. https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/list

        Raises:
            FilterError: the filter is invalid.
            FilterTooCostlyError: it takes too long on an entry.
            InvalidArgumentError: the token is invalid.
        """
        wanted = parse_filter(filter_text)
        after = _position(page_token) if page_token else None
        entries: list[Mapping[str, object]] = []
        steps = 0
        for position, entry, size in self._store.scan(
            parents, wanted.bounds, descending=descending, after=after
        ):
            if steps > PAGE_STEPS:
                return entries, _token(after)
            work = FilterWork(entry_bytes=size)
            passes = wanted.passes(entry, work)
            steps += work.steps
            if passes and len(entries) == page_size:
                return entries, _token(after)
            if passes:
                entries.append(entry)
            after = position
        return entries, ""

    def sink(self, full_name: str) -> ExportSink:
        """The sink.

        Raises:
            ApiError: NOT_FOUND: no sink has this name.
        """
        if (sink := self._sinks.get(full_name)) is None:
            raise ApiError(Status.NOT_FOUND, f"Sink {full_name.rpartition('/')[2]} does not exist")
        return sink

    def sinks_of(self, parent: str) -> Sequence[ExportSink]:
        return [sink for _, sink in sorted(self._sinks.items()) if sink.parent == parent]

    def create_sink(self, parent: str, given: Mapping[str, object], *, unique_writer: bool) -> ExportSink:
        """Create a sink; it receives only later entries.

        Raises:
            ApiError: ALREADY_EXISTS: the name is taken.
            InvalidArgumentError: every fault of the sink.
        """
        full_name = f"{parent}/sinks/{given.get('name', '')}"
        with self._lock:
            if full_name in self._sinks:
                raise ApiError(Status.ALREADY_EXISTS, f"Sink {given.get('name')} already exists")
            return self._keep(load_sink(full_name, new_resource(parent, given, unique_writer=unique_writer)))

    def update_sink(
        self, full_name: str, given: Mapping[str, object], *, mask: tuple[str, ...], unique_writer: bool
    ) -> ExportSink:
        """Update the masked fields of a sink; its pending messages go to its new destination.

        Raises:
            ApiError: NOT_FOUND: no sink has this name.
            InvalidArgumentError: every fault of the sink.
        """
        with self._lock:
            sink = self.sink(full_name)
            updated = updated_resource(
                sink.parent, sink.resource, given, mask=mask, unique_writer=unique_writer
            )
            return self._keep(load_sink(full_name, updated))

    def _keep(self, sink: ExportSink) -> ExportSink:
        self._store.put("sinks", sink.full_name, sink.resource)
        self._sinks[sink.full_name] = sink
        self.outbox.retry()
        return sink

    def delete_sink(self, full_name: str) -> None:
        """Delete the sink and its pending messages.

        Raises:
            ApiError: NOT_FOUND: no sink has this name.
        """
        with self._lock, self._store.transaction():
            self.sink(full_name)
            self._store.delete("sinks", full_name)
            self.outbox.forget(full_name)
            del self._sinks[full_name]

    def logs_of(self, parent: str) -> Sequence[str]:
        """The names of the logs with entries, in order."""
        return sorted(self._store.logs(parent))

    def delete_log(self, parent: str, log_name: str) -> None:
        """Delete a log's entries.

        Raises:
            ApiError: NOT_FOUND: it has none.
        """
        if not self._store.delete_log(parent, log_name):
            raise ApiError(Status.NOT_FOUND, f"Log {log_name} does not exist")

    def metrics_of(self, parent: str) -> Mapping[str, Mapping[str, object]]:
        """The metrics of a project by their full names, in order."""
        metrics = self._store.resources("metrics")
        return {name: metrics[name] for name in sorted(metrics) if name.startswith(f"{parent}/metrics/")}

    def metric(self, parent: str, name: str) -> Mapping[str, object]:
        """Raises `ApiError`: NOT_FOUND."""
        try:
            return self.metrics_of(parent)[f"{parent}/metrics/{name}"]
        except KeyError:
            raise ApiError(Status.NOT_FOUND, f"Metric {name} does not exist.") from None

    def put_metric(
        self, parent: str, given: Mapping[str, object], *, name: str | None = None
    ) -> Mapping[str, object]:
        """Create a metric; with the `name` of one, replace or create it.

        Raises:
            ApiError: ALREADY_EXISTS: there is one, and no `name`.
            InvalidArgumentError: every fault of the metric.
        """
        full_name = f"{parent}/metrics/{name or given.get('name', '')}"
        with self._lock:
            current = self.metrics_of(parent).get(full_name)
            if current and name is None:
                raise ApiError(Status.ALREADY_EXISTS, f"Metric {given.get('name')} already exists")
            metric = metric_resource(parent, given if name is None else {**given, "name": name}, current)
            self._store.put("metrics", full_name, {**metric, "resourceName": full_name})
        return self.metric(parent, str(metric["name"]))

    def delete_metric(self, parent: str, name: str) -> None:
        """Raises `ApiError`: NOT_FOUND."""
        with self._lock:
            self.metric(parent, name)
            self._store.delete("metrics", f"{parent}/metrics/{name}")

    def stats(self) -> dict[str, object]:
        """The number of entries, and each sink's messages owed and published, with its last error."""
        owing = self.outbox.owing()
        sinks = [
            {
                "name": name,
                "topic": sink.topic,
                "owed": owing.get(name, 0),
                **vars(self.outbox.accounts[name]),
            }
            for name, sink in list(self._sinks.items())
        ]
        return {"entries": self._store.count(), "sinks": sinks}


def _token(position: EntryPosition | None) -> str:
    return base64.urlsafe_b64encode(json.dumps(position or []).encode()).decode()


def _position(token: str) -> EntryPosition:
    try:
        timestamp_ns, row_id = json.loads(base64.urlsafe_b64decode(token))
        return EntryPosition(int(timestamp_ns), int(row_id))
    except (ValueError, TypeError) as fault:
        raise InvalidArgumentError(f"pageToken {token!r} was not issued by this service") from fault
