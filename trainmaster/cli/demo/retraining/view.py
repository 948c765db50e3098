"""The retraining demo on the terminal: the rule, its runs and the champion, live or a line an event."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.retraining.data import BURST_FILES
from trainmaster.cli.demo.retraining.watch import Document, RetrainSighting
from trainmaster.cli.watch.live import Line
from trainmaster.client.times import moment
from trainmaster.orchestrator.core.runs.states import ENDS

NOTICES_SHOWN = 4
STYLES = {"succeeded": "green", "failed": "red", "cancelled": "red", "rejected": "red", "expired": "red"}


def picture(seen: RetrainSighting, _console: Console) -> RenderableType:
    return Group(
        Panel(_data(seen), title="The data and the rule", title_align="left"),
        Panel(_runs(seen), title="Runs", title_align="left"),
        Panel(_champion(seen), title="The champion", title_align="left"),
        Panel(_notices(seen), title=f"Notices: {len(seen.notices)}", title_align="left"),
    )


def _data(seen: RetrainSighting) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    for number, delivery in enumerate(seen.deliveries, start=1):
        bar = ProgressBar(total=BURST_FILES, completed=delivery.files, width=32)
        table.add_row(f"burst {number}", bar, f"{delivery.files}/{BURST_FILES} files")
    state = seen.status.get("state", "not dropped yet")
    fired = seen.status.get("firings", 0)
    said = f"rule {state}, counts {seen.counted} arrivals, has fired {fired} times"
    return Group(table, Text(said, style="cyan" if seen.status else "dim"))


def _runs(seen: RetrainSighting) -> RenderableType:
    if not seen.runs:
        return Text("none yet", style="dim")
    table = Table.grid(padding=(0, 2))
    for run in seen.runs:
        verdict = seen.verdict_on(run["run_id"])
        table.add_row(
            Text(run["run_id"], no_wrap=True, overflow="ellipsis"),
            asked_by(run),
            Text(_state(seen, run), style=STYLES.get(run["state"], "yellow")),
            Text("" if verdict is None else outcome(verdict), style="bold"),
        )
    return table


def _state(seen: RetrainSighting, run: Document) -> str:
    """While it trains, the epoch that it has reached: both do not fit beside the id on a narrow terminal."""
    progress = seen.training.get(run["run_id"])
    return (
        str(run["state"]) if progress is None or run["state"] in ENDS else progress.epoch or str(run["state"])
    )


def _champion(seen: RetrainSighting) -> RenderableType:
    current = seen.champion.get("current")
    if current is None:
        return Text("none yet", style="dim")
    return Text(
        f"number {current['number']}: {current['run_id']}, {current['contest']['metric']} {current['value']:.3f}"
    )


def _notices(seen: RetrainSighting) -> RenderableType:
    last = [f"{notice['type']}  {notice['subject']}" for notice in seen.notices[-NOTICES_SHOWN:]]
    return Text("\n".join(last) or "none yet", style="dim", no_wrap=True, overflow="ellipsis")


def doing(seen: RetrainSighting) -> str:
    """What is under way."""
    running = [run["run_id"] for run in seen.runs if run["state"] not in ENDS]
    if running:
        return f"{running[-1]} is training"
    if not seen.runs or not seen.status:
        return "the upload's event is on its way"
    return "waiting for the data, the rule's next tick, the verdict and the notices"


def asked_by(run: Document) -> str:
    source = run["source"]
    return f"firing {source['firing']}" if source["kind"] == "rule" else str(source["kind"])


def outcome(verdict: Document) -> str:
    return "promoted" if verdict["promoted"] else "not promoted"


def news(seen: RetrainSighting) -> Iterator[Line]:
    """What has happened, in the order in which it does."""
    start = seen.started_at
    if seen.status:
        state = seen.status["state"]
        yield f"rule {state}", _line(start, seen.status["updated_at"], f"the rule is {state}")
    for number, delivery in enumerate(seen.deliveries, start=1):
        if delivery.first_at is not None and delivery.done_at is not None:
            took = (delivery.done_at - delivery.first_at).total_seconds()
            said = f"burst {number}: {delivery.files} files arrived after {took:.1f} s  {delivery.prefix}"
            yield f"burst {number} done", _line(start, delivery.done_at, said)
    if seen.counted:
        firings = seen.rule["number"]
        yield f"counted {firings} {seen.counted}", f"{'':>9}  the rule has counted {seen.counted} arrivals"
    for run in seen.runs:
        yield from _run_news(seen, run)


def _run_news(seen: RetrainSighting, run: Document) -> Iterator[Line]:
    run_id, source, start = run["run_id"], run["source"], seen.started_at
    if source["kind"] == "rule":
        files = run["request"]["document"]["labels"]["files"] if "request" in run else "?"
        said = f"the rule fires, number {source['firing']}, for {files} new files"
        yield f"{run_id} fired", _line(start, source["event_time"], said)
    for step in run["history"]:
        yield f"{run_id} {step['state']}", _line(start, step["at"], f"{run_id} {step['state']}")
    verdict = seen.verdict_on(run_id)
    if verdict is not None:
        said = f"{run_id} {outcome(verdict)}: {verdict['reason']}"
        yield f"{run_id} verdict", _line(start, verdict["at"], said)


def _line(start: datetime, at: datetime | str, said: str) -> str:
    when = moment(at) if isinstance(at, str) else at
    since = f"+{(when - start).total_seconds():.1f} s" if when else ""
    return f"{since:>9}  {said}"
