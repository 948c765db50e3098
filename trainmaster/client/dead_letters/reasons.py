"""Reads from the functions' log why an event failed, and what happened when it was replayed.

A function logs each failure under a hash of the event, because Pub/Sub gives a dead letter a new id. The log
works while Cloud Storage and Pub/Sub do not, which is when events fail.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trainmaster.client.terminal import one_line

if TYPE_CHECKING:
    from google.cloud.logging import Client as LoggingClient

SHOWN_CHARS = 400
PER_QUERY = 200
"""A filter has 20,000 characters at most, and Cloud Logging allows 60 queries per minute and project:
https://cloud.google.com/logging/quotas"""
LINES_MAX = 20_000
"""Of one query, 20 pages: an event leaves a line for each of its at most 50 deliveries, so that 200 have 10,000."""


@dataclass(frozen=True, kw_only=True)
class FunctionLine:
    """A function's log line about an event. `error` is the error's name, empty if the event succeeded.

    `final`: the event was acknowledged, because it succeeded or because no redelivery can help.
    """

    event_id: str
    event_key: str
    error: str
    message: str
    run_id: str
    final: bool

    @property
    def text(self) -> str:
        """One printable line, whatever the log holds."""
        found = self.message.strip().rpartition("\n")[2]
        found = found if not self.error or found.startswith(self.error) else f"{self.error}: {found}"
        return one_line(found, SHOWN_CHARS)


class Reasons:
    """A reader of one project's functions' log."""

    def __init__(self, client: "LoggingClient", project: str) -> None:
        self._client = client
        self._log_name = f"projects/{project}/logs/run.googleapis.com%2Fstdout"

    def failures(self, event_keys: Sequence[str], since: datetime) -> dict[str, FunctionLine]:
        """The latest failure of each event in the log, by key."""
        found: dict[str, FunctionLine] = {}
        for part in _parts(event_keys):
            missing = set(part)
            for line in self._lines("event_key", part, since):
                if line.error and line.event_key in missing:
                    found[line.event_key] = line
                    missing.remove(line.event_key)
                # Skips the remaining pages, which have a line for each delivery of an event.
                if not missing:
                    break
        return found

    def outcomes(self, event_ids: Sequence[str], since: datetime) -> dict[str, FunctionLine]:
        """The latest line about each event in the log, by its id; a final line takes precedence."""
        found: dict[str, FunctionLine] = {}
        for part in _parts(event_ids):
            for line in self._lines("event_id", part, since):
                if line.event_id not in found or (line.final and not found[line.event_id].final):
                    found[line.event_id] = line
        return found

    def _lines(self, field: str, values: Sequence[str], since: datetime) -> Iterator[FunctionLine]:
        """The latest lines, at most LINES_MAX, latest first; pages are read as they are needed."""
        from google.cloud.logging import DESCENDING

        wanted = " OR ".join(f'"{value}"' for value in values)
        query = (
            f'logName="{self._log_name}" AND timestamp>="{since.isoformat()}" '
            f"AND jsonPayload.{field}=({wanted})"
        )
        listed = self._client.list_entries(
            filter_=query, order_by=DESCENDING, page_size=1000, max_results=LINES_MAX
        )
        yield from map(_function_line, listed)


def _parts(values: Sequence[str]) -> Iterator[Sequence[str]]:
    return (values[first : first + PER_QUERY] for first in range(0, len(values), PER_QUERY))


def _function_line(entry: Any) -> FunctionLine:  # Any: the client's entry classes share no typed base
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    error = str(payload.get("error", ""))
    return FunctionLine(
        event_id=str(payload.get("event_id", "")),
        event_key=str(payload.get("event_key", "")),
        error=error,
        message=str(payload.get("message", "")),
        run_id=one_line(str(payload.get("run_id", "")), SHOWN_CHARS),
        # functions/main.py logs errors that no redelivery can fix with severity ERROR; all others are redelivered.
        final=not error or entry.severity == "ERROR",
    )
