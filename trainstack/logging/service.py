"""The Logging service without its wire protocol: entries, logs, sinks and metrics."""

import base64
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.instants import now_ns
from trainstack.logging.entry import EntryError, StoredEntry, complete_entry
from trainstack.logging.filters import PAGE_STEPS, FilterWork, parse_filter
from trainstack.logging.resources import (
    ExportSink,
    load_sink,
    message_of,
    metric_resource,
    sink_resource,
)
from trainstack.logging.store import EntryPosition, Kind, LogStore
from trainstack.outbox import Outbox

RETENTION_NS = 30 * 24 * 3600 * 1_000_000_000
"""The retention of the service's default bucket."""
_COMPLETE: Mapping[Kind, Callable[..., dict[str, object]]] = {
    "sinks": sink_resource,
    "metrics": metric_resource,
}


class LogService:
    """Entries, sinks and metrics over one store. Thread-safe."""

    def __init__(self, store: LogStore) -> None:
        self._store = store
        self.outbox = Outbox(store)
        """The unpublished messages of each sink, by its full name."""
        self._sinks = self._loaded_sinks()

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
        sinks = self._sinks
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

    def _loaded_sinks(self) -> Sequence[ExportSink]:
        """Every sink with its compiled filter, which each write needs."""
        return [load_sink(name, resource) for name, resource in self._store.resources("sinks").items()]

    def sink(self, full_name: str) -> ExportSink:
        """Raises `ApiError`: NOT_FOUND."""
        return load_sink(full_name, self.resource("sinks", full_name))

    def resource(self, kind: Kind, full_name: str) -> Mapping[str, object]:
        """The sink or metric as the API shows it.

        Raises:
            ApiError: NOT_FOUND.
        """
        try:
            return self._store.resources(kind)[full_name]
        except KeyError:
            message = f"{kind[:-1].title()} {_id_in(full_name, kind)} does not exist"
            raise ApiError(Status.NOT_FOUND, message) from None

    def resources_of(self, kind: Kind, parent: str) -> Mapping[str, Mapping[str, object]]:
        """A project's sinks or metrics by their full names, in order."""
        resources = sorted(self._store.resources(kind).items())
        return {name: resource for name, resource in resources if name.startswith(f"{parent}/{kind}/")}

    def create(
        self, kind: Kind, parent: str, given: Mapping[str, object], **options: Any
    ) -> Mapping[str, object]:
        """Create a sink, which receives only later entries, or a metric. `options` are those of `sink_resource`.

        Raises:
            ApiError: ALREADY_EXISTS; INVALID_ARGUMENT with every fault.
        """
        full_name = f"{parent}/{kind}/{given.get('name', '')}"
        with self._changing():
            if full_name in self._store.resources(kind):
                raise ApiError(
                    Status.ALREADY_EXISTS, f"{kind[:-1].title()} {given.get('name')} already exists"
                )
            return self._keep(kind, full_name, _COMPLETE[kind](parent, given, **options))

    def update(
        self, kind: Kind, full_name: str, given: Mapping[str, object], **options: Any
    ) -> Mapping[str, object]:
        """Update a sink, whose pending messages go to its new destination; replace or create a metric.

        Raises:
            ApiError: NOT_FOUND for a sink; INVALID_ARGUMENT with every fault.
        """
        parent = full_name.partition(f"/{kind}/")[0]
        with self._changing():
            if kind == "sinks":
                current: Mapping[str, object] | None = self.resource(kind, full_name)
            else:
                current = self._store.resources(kind).get(full_name)
                given = {**given, "name": _id_in(full_name, kind)}
            return self._keep(kind, full_name, _COMPLETE[kind](parent, given, current, **options))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        with self._store.lock:
            with self._store.transaction():
                yield
            self._sinks = self._loaded_sinks()  # a full disk is known only by now
        self.outbox.retry()

    def _keep(self, kind: Kind, full_name: str, resource: Mapping[str, object]) -> Mapping[str, object]:
        if kind == "sinks":
            load_sink(full_name, resource)  # refuses an invalid one
        self._store.put(kind, full_name, resource)
        return resource

    def delete(self, kind: Kind, full_name: str) -> None:
        """Delete a metric, or a sink with its pending messages.

        Raises:
            ApiError: NOT_FOUND.
        """
        with self._changing():
            self.resource(kind, full_name)
            self._store.delete(kind, full_name)
            if kind == "sinks":
                self.outbox.forget(full_name)

    def logs_of(self, parent: str) -> Sequence[str]:
        """The names of the logs with entries, in order."""
        return self._store.logs(parent)

    def delete_log(self, parent: str, log_name: str) -> None:
        """Delete a log's entries.

        Raises:
            ApiError: NOT_FOUND: it has none.
        """
        if not self._store.delete_log(parent, log_name):
            raise ApiError(Status.NOT_FOUND, f"Log {log_name} does not exist")

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
            for sink in self._sinks
            for name in (sink.full_name,)
        ]
        return {"entries": self._store.count(), "sinks": sinks}


def _id_in(full_name: str, kind: Kind) -> str:
    """A metric's may have slashes."""
    return full_name.partition(f"/{kind}/")[2]


def _token(position: EntryPosition | None) -> str:
    return base64.urlsafe_b64encode(json.dumps(position or []).encode()).decode()


def _position(token: str) -> EntryPosition:
    try:
        timestamp_ns, row_id = json.loads(base64.urlsafe_b64decode(token))
        return EntryPosition(int(timestamp_ns), int(row_id))
    except (ValueError, TypeError) as fault:
        raise InvalidArgumentError(f"pageToken {token!r} was not issued by this service") from fault
