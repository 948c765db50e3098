"""The path of one request as a demo shows it: hops with their times, read from the services.

Each hop is taken from the service that knows it best: the object's own creation time, the run
record's history, the job's times, the log entries. Nothing is timed by the demo's own clock.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rich.console import OverflowMethod
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.view import Line
from trainmaster.cli.demo.watch import Sighting
from trainmaster.client.logs.line import COMPLETED
from trainmaster.client.times import moment


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One station of the way; `at` is unknown until it was passed."""

    title: str
    at: datetime | None = None
    detail: str = ""


def first_time(record: Mapping[str, Any], state: str) -> datetime | None:
    """When the record first said `state`."""
    history: Sequence[Mapping[str, Any]] = record.get("history", [])
    return next((moment(step["at"]) for step in history if step["state"] == state), None)


def whole_way(seen: Sighting, *, resource: str, at_work: Iterable[Hop]) -> list[Hop]:
    """The stations in the order in which a request passes them; `at_work` are those between submission and end."""
    record = seen.record
    model_uri = (record.get("model") or {}).get("uri")
    return [
        Hop(title="Request dropped", at=seen.dropped_at, detail=seen.dropped_uri),
        Hop(
            title="CloudEvent reaches on_request_uploaded",
            at=first_time(record, "reserved"),
            detail=f"run {record['run_id']} reserved" if record else "",
        ),
        Hop(
            title=f"Vertex AI {resource} submitted",
            at=first_time(record, "submitted"),
            detail=seen.job_name,
        ),
        *at_work,
        Hop(title="Job ends", at=seen.job_ended_at, detail=seen.job_state or ""),
        Hop(title="Log sink takes the job's last line", at=seen.completed_line_at, detail=COMPLETED),
        Hop(
            title="on_job_log closes the record",
            at=first_time(record, record["state"]) if seen.ended else None,
            detail=str(model_uri or record.get("state", "")) if seen.ended else "",
        ),
    ]


def way_panel(hops: Iterable[Hop], start: datetime, *, one_line_each: bool = False) -> Panel:
    """The whole way as it stands; times count from `start`. Long details are folded, or else cut off."""
    overflow: OverflowMethod = "ellipsis" if one_line_each else "fold"
    table = Table.grid(padding=(0, 2))
    for hop in hops:
        passed = hop.at is not None
        table.add_row(
            Text("●", style="green") if passed else Text("○", style="dim"),
            Text(hop.title, style="" if passed else "dim", no_wrap=one_line_each),
            Text(_since(hop, start), justify="right", no_wrap=one_line_each),
            Text(hop.detail if passed else "", style="cyan", overflow=overflow, no_wrap=one_line_each),
        )
    return Panel(table, title="The path of the request", title_align="left")


def hop_news(hops: Iterable[Hop], start: datetime) -> Iterator[Line]:
    """A line for each hop that was passed."""
    for hop in hops:
        if hop.at is not None:
            yield hop.title, f"{_since(hop, start):>9}  {hop.title}  {hop.detail}".rstrip()


def _since(hop: Hop, start: datetime) -> str:
    return f"+{(hop.at - start).total_seconds():.1f} s" if hop.at else ""
