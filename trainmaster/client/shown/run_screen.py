"""The screen of a run, and of a file or message without one."""

import shlex
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trainmaster.client.runs.facts import is_tuning, lacks_model, state_of
from trainmaster.client.shown.cost_lines import cost_facts
from trainmaster.client.shown.machine_lines import now_facts, utilization_facts
from trainmaster.client.shown.run_lines import (
    by_text,
    failure_facts,
    fault_facts,
    job_facts,
    rendered_faults,
    result_facts,
    sender_facts,
    source_text,
    waiting_facts,
)
from trainmaster.client.terminal import STATE, Fact
from trainmaster.client.times import span, utc_text
from trainmaster.client.watch.machines import MachinesNow
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from trainmaster.client.find import Run


def run_facts(
    run: "Run", now: datetime, *, is_local: bool, machines: MachinesNow | None = None
) -> Iterator[Fact]:
    """The screen of a run; `machines` of one that is active."""
    record = run.record
    yield "run", [record.run_id]
    yield STATE, [state_text(record, now)]
    if record.cancel_requested_at is not None and not record.ended:
        yield "cancelling", [f"since {utc_text(record.cancel_requested_at)}{by_text(record)}"]
    yield from _delivery_facts(run)
    yield from waiting_facts(record, now)
    yield from subject_facts(record, now, is_local=is_local)
    yield from now_facts(machines or MachinesNow())
    yield from failure_facts(record)
    yield from fault_facts(record)
    yield "next", _next_lines(record)


def subject_facts(record: RunRecord, now: datetime, *, is_local: bool) -> Iterator[Fact]:
    """Whose run it is, what started it, where it runs, what came of it, and its cost."""
    if record.source.team is not None:
        yield "team", [record.source.team]
    yield "model name", [record.model_name or "-"]
    yield "source", [source_text(record.source)]
    yield from sender_facts(record)
    yield from job_facts(record, now, is_local=is_local)
    yield from result_facts(record, now)
    yield from cost_facts(record, now)
    yield from utilization_facts(record, is_short=True)


def state_text(record: RunRecord, now: datetime) -> str:
    """The state, since when, and of a run that has ended how long it took."""
    entered = record.history[-1].at
    if not record.ended:
        return f"{state_of(record)} for {span(now - entered)}, since {utc_text(entered)}"
    took = f", after {span(entered - record.history[0].at)}" if record.job else ""
    model = " without a model" if lacks_model(record) else ""
    return f"{state_of(record)}{model} {span(now - entered)} ago, at {utc_text(entered)}{took}"


def _delivery_facts(run: "Run") -> Iterator[Fact]:
    """Deliveries of the run's event that failed since the run last made progress, and repetitions of its file."""
    status = run.status or {}
    if status.get("failed_deliveries"):
        yield "event", [str(status.get("reason"))]
    if status.get("repeated_by"):
        again = f"generation {status['repeated_by']} of the file has the content of generation {status.get('generation')}"
        yield "saved again", [f"{again}, and so started no other run"]


def next_commands(record: RunRecord) -> Iterator[tuple[str, str]]:
    """What a user may want to know or do next, each with its command."""
    run_id = shlex.quote(record.run_id)
    yield "Every step that led here", f"trainmaster why {run_id}"
    if record.job is not None:
        yield "Its log", f"trainmaster logs {run_id}"
        if is_tuning(record):
            yield "Its trials", f"trainmaster study {run_id}"
    elif not record.ended:
        yield "The runs that wait", "trainmaster queue"
    if record.model is not None and record.model.deleted_at is None:
        yield "Its model, verified", f"trainmaster download {run_id}"
    if not record.ended:
        yield "Its end", f"trainmaster cancel {run_id}"


def _next_lines(record: RunRecord) -> list[str]:
    if record.state is not RunState.REJECTED:
        return [command for _, command in next_commands(record)]
    if record.is_order:
        return ["correct the order, and give it again"]
    return ["correct the request, then: trainmaster check FILE"]


def drop_facts(status: Mapping[str, Any], text: str) -> Iterator[Fact]:
    """The screen of a file or message without a run."""
    state = str(status.get("state"))
    yield ("file" if "dropped_name" in status else "message"), [str(status.get("dropped_name") or text)]
    yield STATE, [f"{state} at {_time_text(status.get('updated_at'))}"]
    if status.get("reason"):
        yield "reason", [str(status["reason"])]
    faults = status.get("faults") or ()
    for lines in rendered_faults(faults, str(status.get("dropped_name") or "message").rpartition("/")[2]):
        yield "fault", lines
    for problem in (status.get("problems") or ())[len(faults) :]:
        yield "problem", [str(problem)]
    if status.get("report_uri"):
        yield "report", [str(status["report_uri"])]
    if status.get("previous_run_id"):
        yield "last run", [str(status["previous_run_id"])]
    yield "next", [_next_for(state, status)]


def _time_text(recorded: object) -> str:
    """A time of a status as this screen prints times; what is damaged, as it is."""
    try:
        return utc_text(datetime.fromisoformat(str(recorded)))
    except ValueError:
        return str(recorded)


def _next_for(state: str, status: Mapping[str, Any]) -> str:
    if "rule_id" in status:
        return f"trainmaster rules show {status['rule_id']}"
    if state == "dead_letter":
        return "trainmaster dead-letters ls"
    if state == "retrying":
        return "the event is delivered again by itself; look again with this command"
    if state == "ignored" and status.get("run_id"):
        return shlex.join(["trainmaster", "status", str(status["run_id"])])
    if state == "ignored":
        return "drop a corrected file: trainmaster submit FILE"
    return "trainmaster rules ls" if state == "held" else "trainmaster ls"
