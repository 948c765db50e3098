"""What changes or costs something: a first call says what would happen and returns a token, a second needs it.

Each function raises ClientRefused or NotFound for what the client is to correct, and then nothing was changed.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from trainmaster.cli.mcp.budget import Budget
from trainmaster.cli.mcp.tokens import Tokens
from trainmaster.cli.submit.script_notes import certain_findings
from trainmaster.client.deployment import read_deployment
from trainmaster.client.errors import ClientRefused, TimedOut
from trainmaster.client.find import read_run, run_ids_of
from trainmaster.client.plan.plan import plan_with_ledger
from trainmaster.client.rules.orders import cancel_run
from trainmaster.client.submission import send
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.settings import parse_settings
from trainmaster.client.submission.source import pasted_source, read_source_below
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.web.source import ConsoleSource
from trainmaster.web.subject import ActionOutcome, Ask, ConsoleAction, Proposal

# Any: JSON that the tool's schema allows.
Arguments = Mapping[str, Any]
Answer = dict[str, Any]
NEXT = "To do it, call {} with the same arguments and this token, within 10 minutes."
REJECTED = (
    "The service did not accept this request. To send it once more, plan and submit it with another `repeat`."
)


@dataclass(frozen=True, kw_only=True)
class Session:
    """`labels` are those of every run that it starts. Files are read in `folder` and below it alone."""

    source: ConsoleSource
    folder: Path
    labels: Mapping[str, str]
    budget: Budget
    tokens: Tokens = field(default_factory=Tokens)

    def ask(self, arguments: Arguments) -> Ask:
        """The arguments as the console's resources and actions get them."""
        form, query = {key: str(value) for key, value in arguments.items()}, urlencode(arguments, doseq=True)
        return Ask(source=self.source, now=datetime.now(UTC), path=form, query=QueryParams(query), form=form)

    @property
    def spent(self) -> dict[str, str]:
        """The budget, and what counts towards it; empty without one."""
        if (limit := self.budget.limit) is None:
            return {}
        return {"budget_usd": f"{limit:f}", "spent_or_reserved_usd": f"{self.budget.spent(self.source):.6f}"}


def check(session: Session, arguments: Arguments) -> Answer:
    return {"data": _examine_request(session, arguments).document}


def plan(session: Session, arguments: Arguments) -> Answer:
    """The plan, what it may cost, and unless a cap, the budget or --read-only forbids it a token for `submit`."""
    clients, (request, planned, key) = session.source.clients, planned_request(session, arguments)
    found = plan_with_ledger(clients, request, key=key, now=datetime.now(UTC))
    answer = {"data": found and found.document, "notes": request.bounds, "may_cost": planned["cost"]}
    is_refused = found is None or (found.outlook is not None and found.outlook.verdict == "refused")
    if is_refused or not session.source.writable:
        return answer | session.spent
    refusal = session.budget.refusal(session.source, key, request.bound)
    if refusal and send.started_with(clients, request, key) is None:
        return answer | session.spent | {"refusal": refusal}
    return answer | session.spent | {"token": session.tokens.make(planned), "next": NEXT.format("submit")}


def submit(session: Session, arguments: Arguments) -> Answer:
    """The runs of the planned request: started now, or by an earlier call with the same content."""
    clients, (request, planned, key) = session.source.clients, planned_request(session, arguments)
    session.tokens.check(arguments["token"], planned, is_repeatable=True)
    note = "Started before, by the same request in this session. Nothing was sent."
    if (sent := send.started_with(clients, request, key)) is None:

        def send_all() -> send.Sent:
            for packed in request.archives:
                send.send_script(clients, packed, request.terms.team)
            return send.publish(clients, request, key)

        sent, note = session.budget.spend(session.source, key, request.bound, send_all), ""
    session.budget.runs[key] = sent.run_ids
    if (status := send.wait_until_recorded(clients, sent)) is None:
        note = "Sent, and not recorded yet. To submit it again starts no second run."
    elif problems := send.problems_of(status):
        session.budget.runs[key] = send.as_refused(sent, status).run_ids
        raise ClientRefused("\n".join([*problems, REJECTED]))
    return {"data": [send.sent_document(sent, each) for each in sent.run_ids], "notes": note, **session.spent}


def order(session: Session, name: str, action: ConsoleAction, arguments: Arguments) -> Answer:
    """What the action would do, with a token; with the token of exactly that, what it has done."""
    session.source.forget()
    proposal = action.propose(session.ask(arguments))
    if proposal.refusal:
        raise ClientRefused(f"{proposal.refusal} Nothing was changed.")
    chosen = {**{each.name: each.value for each in proposal.fields}, **arguments}
    token = chosen.pop("token", None)
    effects = {"question": proposal.title, "effects": [*proposal.effects], "chosen": chosen}
    planned = {"action": name, "content": _digest(effects), "context": session.source.context.name}
    if token is None:
        return {"data": effects, "token": session.tokens.make(planned), "next": NEXT.format(name)}
    session.tokens.check(token, planned)
    outcome = action.perform(session.ask(chosen))
    return {"data": outcome.document, "notes": outcome.message}


def cancel(session: Session, action: ConsoleAction, arguments: Arguments) -> Answer:
    """As `order`; of a group, one order ends all its runs."""
    clients = session.source.clients
    run_ids = run_ids_of(clients, arguments["run_id"])
    if arguments["run_id"] in run_ids:
        return order(session, "cancel", action, arguments)

    def propose(_: Ask) -> Proposal:
        records = [read_run(clients, run_id).record for run_id in run_ids]
        left = [record.run_id for record in records if not record.ended]
        return Proposal(
            title=f"Cancel the runs of the group {arguments['run_id']} that have not ended?",
            effects=[f"{run_id} ends as cancelled, and its job, if it has one." for run_id in left],
            command=shlex.join(["trainmaster", "cancel", arguments["run_id"]]),
            button="Cancel the runs",
            back="/runs",
            refusal="" if left else "All its runs have ended already.",
        )

    def perform(_: Ask) -> ActionOutcome:
        document, message = {"group": arguments["run_id"], "run_ids": [*run_ids]}, "They are being cancelled."
        try:
            cancel_run(clients, read_run(clients, run_ids[0]).record, arguments["run_id"])
        except TimedOut as late:  # their records show when they are
            message = str(late)
        return ActionOutcome(message=message, go_to="/runs", document=document)

    of_group = ConsoleAction(path=action.path, summary=action.summary, propose=propose, perform=perform)
    return order(session, "cancel", of_group, arguments)


def planned_request(session: Session, arguments: Arguments) -> tuple[Examination, dict[str, str], str]:
    """The sound request with the session's labels, what its token is bound to, and its idempotency key.

    One content is one run in a session, for each `repeat`.
    """
    labels = [f'labels.{key}="{value}"' for key, value in session.labels.items()]  # a text, also if it is 1
    found = _examine_request(session, arguments, *labels)
    certain = "\n".join(f"{each.found} {each.cost} {each.repair}" for each in certain_findings(found))
    if (refusal := found.refusal or certain) or found.request is None:
        raise ClientRefused(refusal)
    content, bound = _digest([found.request.document, arguments.get("repeat")]), found.bound
    deployment = read_deployment(session.source.clients)
    planned = {
        "action": "submit",
        "content": content,
        "context": session.source.context.name,
        "policy": _digest([deployment.policy, deployment.prices]),
        "cost": f"{bound.at_most:f} {bound.currency}" if bound and bound.at_most is not None else "unknown",
    }
    return found, planned, f"mcp-{content}"


def _examine_request(session: Session, arguments: Arguments, *settings: str) -> Examination:
    file, text = arguments.get("file"), arguments.get("text")
    if (file is None) == (text is None):
        raise ClientRefused("Give either file, a path, or text, the document itself.")
    source = pasted_source(str(text)) if file is None else read_source_below(session.folder, file)
    edits = Edits(settings=parse_settings((*arguments.get("set", ()), *settings)))
    return examination_of(source, deployed_terms(session.source.clients), edits, is_message=True)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:40]
