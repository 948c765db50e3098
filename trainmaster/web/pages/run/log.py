"""The log on a run's page, and as documents."""

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trainmaster.client.errors import ClientRefused
from trainmaster.client.find import Run
from trainmaster.client.logs.line import SERVICE, LogLine, shortened_line
from trainmaster.client.logs.read import Selection, check_selection
from trainmaster.client.terminal import one_line, visible
from trainmaster.web.faults import WrongQuery
from trainmaster.web.pages.run.asked_run import run_of
from trainmaster.web.pages.run.log_pages import PAGE_LINES, LogPage, read_page
from trainmaster.web.pages.run.monitor import Monitored
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

LIMIT_MAX = 1000
TEXT_MAX_CHARS = 200
LANES_OFFERED = 200
SHOWN_MAX_CHARS = 2000
"""Of a line on the page."""
_LOUD = {"WARNING": "warn", **dict.fromkeys(("ERROR", "CRITICAL", "ALERT", "EMERGENCY"), "bad")}


def log_view(ask: Ask, found: Monitored, path: str) -> Mapping[str, Any]:
    """The part of the log that the query asks for, `replica`, `q` and `before`, and how to reach the others.

    `earlier` and `newest` are the addresses of the part before and of the end, empty where there is no other part;
    `lanes` are the replicas to choose from; `command` prints this part, or the whole log, in a terminal.

    Raises:
        WrongQuery, NotFound: the query is wrong.
    """
    lane, text = _query_text(ask, "replica"), _query_text(ask, "q")
    page = _page(ask, found, selection_of(lane, text))
    earlier = ask.address(path, before=page.earlier) + "#log" if page.earlier else ""
    names = [each.name for each in found.lanes][:LANES_OFFERED]
    return {
        "lines": [_shown_line(line) for line in page.lines],
        "earlier": earlier,
        "newest": ask.address(path, before=None) + "#log" if ask.query.get("before") else "",
        "lanes": list(dict.fromkeys([*names, SERVICE, *([lane] if lane else [])])),
        "lane": lane,
        "text": text,
        "command": _command(found.run.record.run_id, lane),
    }


def _page(ask: Ask, found: Monitored, selection: Selection) -> LogPage:
    run, before = found.run, ask.query.get("before")
    if not before and selection == Selection():
        return found.log
    # Kept among the few shared objects, because a page of long lines is large.
    return ask.source.follow(
        ("log", run.record.run_id, selection, before),
        AnswerAge.RARE if before else AnswerAge.LIVE,
        lambda clients: clients,
        lambda clients: _shortened_page(_read(clients, run, selection, before=before)),
    )


def _read(
    clients: "Clients", run: Run, selection: Selection, *, before: str | None, limit: int = PAGE_LINES
) -> LogPage:
    try:
        return read_page(clients, run, selection, limit=limit, before=before)
    except ClientRefused as refused:
        raise WrongQuery(str(refused)) from refused


def _shortened_page(page: LogPage) -> LogPage:
    return replace(page, lines=[shortened_line(line) for line in page.lines])


def selection_of(lane: str, text: str) -> Selection:
    """The lines of a replica, `3/workerpool0-0` being one of the trial 3, that contain a text; empty values select all."""
    trial_id, _, replica = lane.rpartition("/")
    return Selection(replica=replica or None, trial_id=trial_id or None, text=text or None)


def _query_text(ask: Ask, name: str) -> str:
    return one_line(ask.query.get(name) or "", TEXT_MAX_CHARS).strip()


def _command(run_id: str, lane: str) -> str:
    trial_id, _, replica = lane.rpartition("/")
    words = ["trainmaster", "logs", run_id]
    words += ["--replica", replica] if replica else []
    words += ["--trial", trial_id] if trial_id else []
    return shlex.join(words)


def _shown_line(line: LogLine) -> Mapping[str, str]:
    """A line as the page shows it. `tone` is `warn` or `bad` for a severity that matters, else empty."""
    text = line.text if len(line.text) <= SHOWN_MAX_CHARS else f"{line.text[:SHOWN_MAX_CHARS]}…"
    tone = _LOUD.get(line.level, "")
    name = f"{line.insert_id} {line.at.isoformat()}".encode("utf-8", "surrogatepass")
    return {
        "id": f"line-{hashlib.blake2b(name, digest_size=8).hexdigest()}",
        "time": f"{line.at:%H:%M:%S}.{line.at.microsecond // 1000:03}",
        "lane": visible(one_line(line.lane, 80)),
        "tone": tone,
        "severity": line.label if tone else "",
        "text": visible(text).rstrip("\n"),
    }


def log_document(ask: Ask) -> dict[str, Any]:
    """A part of the log: documents of schemas/log_line.v1.schema.json, and the cursor of the part before."""
    run = run_of(ask)
    selection = selection_of(_query_text(ask, "replica"), _query_text(ask, "q"))
    check_selection(selection, run.record)
    limit = ask.whole("limit", PAGE_LINES, LIMIT_MAX)
    page = _read(ask.source.clients, run, selection, limit=limit, before=ask.query.get("before") or None)
    lines = [line.document for line in page.lines]
    return {"run_id": run.record.run_id, "lines": lines, "earlier": page.earlier}
