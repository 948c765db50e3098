"""The actions on a run: end it, or submit its request once more."""

import shlex
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused, TimedOut
from trainmaster.client.find import Run, read_run
from trainmaster.client.rules.orders import cancel_run
from trainmaster.client.submission.again import request_again
from trainmaster.client.submission.send import start_run
from trainmaster.orchestrator.core.names import object_uri
from trainmaster.orchestrator.core.policy.currency import shown_bound
from trainmaster.web.pages.run.asked_run import run_of
from trainmaster.web.subject import ActionOutcome, Ask, ConsoleAction, Proposal

if TYPE_CHECKING:
    from trainmaster.client.submission.examination import Examination
    from trainmaster.orchestrator.core.runs.record import RunRecord

WAIT_S = 15.0
"""How long a browser waits for the service's answer; what was sent stays sent."""


def _page_of(run_id: str) -> str:
    return f"/runs/{run_id}"


def propose_cancel(ask: Ask) -> Proposal:
    """What the end of the run means."""
    record = run_of(ask).record
    return Proposal(
        title=f"Cancel the run {record.run_id}?",
        effects=_effects_of_cancel(record),
        command=shlex.join(["trainmaster", "cancel", record.run_id]),
        button="Cancel the run",
        back=_page_of(record.run_id),
        refusal=f"The run has already ended: {record.state}." if record.ended else "",
        is_destructive=True,
    )


def _effects_of_cancel(record: "RunRecord") -> list[str]:
    if record.job is None:
        return ["It leaves the queue, and gets no job."]
    return [
        f"Its job {record.job.name} is cancelled.",
        "Files that it has written stay, and none of them becomes champion.",
        "No other job follows, and its record is closed as cancelled.",
    ]


def cancel(ask: Ask) -> ActionOutcome:
    """Give the order.

    Raises:
        ClientRefused: the run has ended, or the service refuses the order.
    """
    run_id = run_of(ask).record.run_id
    record = read_run(ask.source.clients, run_id).record
    if record.ended:
        raise ClientRefused(f"{run_id} has already ended: {record.state}.")
    message = f"{run_id} is being cancelled."
    try:
        cancel_run(ask.clients_of(record.source.team), record, timeout_s=WAIT_S)
    except TimedOut as late:  # its page shows when it is
        message = str(late)
    return ActionOutcome(message=message, go_to=_page_of(run_id), document={"run_id": run_id})


def propose_again(ask: Ask) -> Proposal:
    """Where the request goes, after the deployment's checks."""
    run = run_of(ask)
    refusal, effects = "", list[str]()
    try:
        request = request_again(ask.clients_of(run.record.source.team), run)
        effects = _effects_of_again(ask, run, request)
    except ClientRefused as refused:
        refusal = str(refused)
    return Proposal(
        title=f"Run {run.record.run_id} again?",
        effects=effects,
        command=shlex.join(["trainmaster", "again", run.record.run_id]),
        button="Run again",
        back=_page_of(run.record.run_id),
        refusal=refusal,
    )


def _effects_of_again(ask: Ask, run: Run, request: "Examination") -> list[str]:
    uri = object_uri(ask.source.context.inbox_bucket, request.object_name)
    estimate = run.record.request.estimate if run.record.request else None
    cost = (
        [f"It costs at most about {shown_bound(estimate.at_most, estimate.currency)}."]
        if estimate and estimate.at_most is not None
        else []
    )
    rule_id = run.record.source.rule_id
    is_rules = f"The rule {rule_id} filled in the text. The new run does not count as one of its firings."
    return [
        f"The same text is uploaded as {uri}.",
        *([is_rules] if rule_id is not None else []),
        "The upload starts another run, with its own id; this one stays as it is.",
        *cost,
    ]


def again(ask: Ask) -> ActionOutcome:
    """Upload the request, and wait until its run is on record.

    Raises:
        ClientRefused: as `request_again`, or the service refuses the request.
        TimedOut: the service has not read the previous upload of that name.
    """
    run = run_of(ask)
    clients = ask.clients_of(run.record.source.team)
    sent, is_recorded = start_run(clients, request_again(clients, run), timeout_s=WAIT_S)
    page = _page_of(sent.run_id) if is_recorded else "/runs"
    message = f"{sent.run_id} was started by {sent.where}."
    return ActionOutcome(message=message, go_to=page, document={"run_id": sent.run_id, "sent_to": sent.where})


ACTIONS = (
    ConsoleAction(
        path="/runs/{run_id}/cancel",
        summary="End a run: a waiting run gets no job, and a job is cancelled.",
        propose=propose_cancel,
        perform=cancel,
    ),
    ConsoleAction(
        path="/runs/{run_id}/again",
        summary="Submit the request of a run once more, as another run.",
        propose=propose_again,
        perform=again,
    ),
)
