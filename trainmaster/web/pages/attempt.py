"""Try a request: its faults, its plan and cost as it is typed, and its submission."""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from trainmaster.client.checking import Kind, order_command
from trainmaster.client.errors import Refused
from trainmaster.client.plan.plan import Plan, PlannedJob
from trainmaster.client.request_files import STDIN
from trainmaster.client.submission.pasted import (
    Examined,
    Pasted,
    examine,
    pasted,
    plan_examined,
    submit_pasted,
)
from trainmaster.client.submission.rules import deployed_rules
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.faults import MAX_FAULTS, Fault
from trainmaster.orchestrator.core.documents.placing import position
from trainmaster.orchestrator.core.policy.currency import shown_bound, shown_money
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.runs.record import Estimate
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES
from trainmaster.web.faults import WrongBody, WrongQuery
from trainmaster.web.pages.examples import EXAMPLES, example
from trainmaster.web.source import Age
from trainmaster.web.subject import (
    Action,
    ApiRoute,
    Ask,
    Outcome,
    Page,
    PageRoute,
    Parameter,
    Proposal,
    Subject,
)

BEHIND_SHOWN = 5
EXCERPT_CHARS, EXCERPT_LEAD = 100, 30
"""Characters that are shown of a line, and of them those before a fault that is far to the right."""
_NAMES = {Kind.REQUEST: "request.yaml", Kind.RULE: "rule.yaml", Kind.ORDER: "order.yaml"}
_ELSEWHERE = {
    Kind.RULE: "This is a retraining rule. Save it, and apply it: trainmaster rules apply {file}",
    Kind.ORDER: "This is an order. Give it: {order}",
}


@dataclass(frozen=True, kw_only=True)
class ShownFault:
    """A fault, and its line with a mark below; `level` is `error` or `warning`."""

    fault: Fault
    level: str
    excerpt: tuple[str, str] | None


@dataclass(frozen=True, kw_only=True)
class ShownJob:
    """A candidate of the plan, in a few words."""

    title: str
    where: str
    cost: str
    refusals: tuple[str, ...]


def form(ask: Ask) -> Page:
    """The empty form, or with an example in it."""
    name = ask.query.get("example", "")
    if not name:
        return _page("", "", None)
    if name not in EXAMPLES:
        raise WrongQuery(f"example: expected one of {', '.join(EXAMPLES)}, found {name[:40]!r}")
    text, file, needs = example(name, ask.source.context.project)
    return _page(text, file, None, needs=needs)


def checked(ask: Ask) -> Page:
    """The faults and the offline plan: for each pause of the typist. Costs at most one read in ten minutes."""
    return _answer(ask, _examined, loads_more=ask.source.is_local)


def planned(ask: Ask) -> Page:
    """The faults, or the plan with what the ledger shows now."""
    return _answer(ask, _planned)


def _answer(ask: Ask, look: Callable[[Ask], Examined], *, loads_more: bool = False) -> Page:
    """The page with what was found, or what prevents a look, such as the name of the file."""
    text, file = ask.form.get("text", ""), ask.form.get("file", "")
    try:
        found = look(ask)
    except Refused as refused:
        return _page(text, file, None, problem=str(refused))
    return _page(text, file, found, loads_more=loads_more)


def _examined(ask: Ask) -> Examined:
    rules, prices = _rules(ask)
    return examine(_given(ask), ask.source.context, rules, prices)


def _planned(ask: Ask) -> Examined:
    rules, prices = _rules(ask)
    found = _examined(ask)
    return replace(found, plan=plan_examined(ask.source.clients, found, rules, prices, ask.now))


def _given(ask: Ask) -> Pasted:
    return pasted(ask.form.get("text", ""), ask.form.get("file", ""))


def _rules(ask: Ask) -> tuple[RequestRules, Prices]:
    return ask.source.read("request-rules", Age.RARE, deployed_rules)


def _page(
    text: str,
    file: str,
    found: Examined | None,
    *,
    problem: str = "",
    needs: str = "",
    loads_more: bool = False,
) -> Page:
    plan = found.plan if found else None
    has_script = found is not None and plan is not None and found.given.has_local_script
    name = _file_name(found)
    verb = "plan" if found is None or found.checked.kind is Kind.REQUEST else "check"
    return Page(
        title="Try a request",
        template="try.html",
        values={
            "text": text,
            "file": file,
            "examples": [(key, title) for key, (_, title) in EXAMPLES.items()],
            "problem": problem,
            "needs": needs,
            "found": found.checked if found else None,
            "faults": list(_faults(found)) if found else [],
            "plan": plan,
            "would": _would(plan) if plan else "",
            "behind": plan.outlook.behind[:BEHIND_SHOWN] if plan and plan.outlook else (),
            "jobs": [_job(each) for each in plan.jobs] if plan else [],
            "elsewhere": _elsewhere(found, name) if found else "",
            "has_script": has_script,
            "may_submit": plan is not None and not has_script and not _is_refused(plan),
            "loads_more": loads_more and plan is not None and plan.outlook is None,
            "submit_command": f"trainmaster submit {shlex.quote(name)}",
            "bytes_max": MAX_REQUEST_BYTES,
        },
        command=f"trainmaster {verb} {shlex.quote(name)}",
        is_final=True,
    )


def _elsewhere(found: Examined, name: str) -> str:
    """Where a rule or an order is sent; empty of a request."""
    template = _ELSEWHERE.get(found.checked.kind, "")
    # A text that is too large to be read counts as a request.
    order = order_command(found.given.value) if template else ""
    return template.format(file=shlex.quote(name), order=order)


def _file_name(found: Examined | None) -> str:
    if found is None:
        return _NAMES[Kind.REQUEST]
    return _NAMES[found.checked.kind] if found.given.file == STDIN else found.given.file


def _is_refused(plan: Plan) -> bool:
    return plan.outlook is not None and plan.outlook.verdict == "refused"


def _faults(found: Examined) -> Iterator[ShownFault]:
    """In the order of the text, at most MAX_FAULTS of each level."""
    for level, faults in (("error", found.checked.faults), ("warning", found.checked.warnings)):
        for each in sorted(faults[:MAX_FAULTS], key=position):
            yield ShownFault(fault=each, level=level, excerpt=_excerpt(each))


def _excerpt(fault: Fault) -> tuple[str, str] | None:
    """The line and the mark below it, cut so that the mark's beginning is in sight."""
    if fault.place is None or fault.place.excerpt is None:
        return None
    line, mark = fault.place.excerpt
    shift = len(mark) - len(mark.lstrip())
    if shift > EXCERPT_CHARS - EXCERPT_LEAD:
        line, mark = f"…{line[shift - EXCERPT_LEAD :]}", f" {mark[shift - EXCERPT_LEAD :]}"
    cut = f"{line[:EXCERPT_CHARS]}…" if len(line) > EXCERPT_CHARS else line
    return cut, mark[:EXCERPT_CHARS]


def _would(plan: Plan) -> str:
    outlook = plan.outlook
    if outlook is None:
        return ""
    how = "the request itself" if outlook.candidate == 0 else f"fallback {outlook.candidate}"
    match outlook.verdict:
        case "starts":
            return f"starts at once, with {how}, if Vertex AI has room."
        case "waits":
            return f"waits, with {how}: {outlook.reason}."
        case _:
            return f"is refused: {outlook.reason}"


def _job(job: PlannedJob) -> ShownJob:
    return ShownJob(
        title="Job" if job.number == 0 else f"Fallback {job.number}",
        where=f"{job.kind} in {job.region} on {job.machines}",
        cost=_cost(job.estimate),
        refusals=tuple(f"no room at {each.at:%Y-%m-%d %H:%M} UTC: {each.outcome}" for each in job.refusals),
    )


def _cost(estimate: Estimate) -> str:
    if estimate.at_most is None or estimate.per_hour is None:
        return f"unknown: no price for {', '.join(estimate.unknown)}"
    per_hour = shown_money(estimate.per_hour, estimate.currency)
    return f"about {per_hour} an hour, at most {shown_bound(estimate.at_most, estimate.currency)}"


def propose(ask: Ask) -> Proposal:
    """The way to the form: the text does not fit into an address."""
    return Proposal(
        title="Submit a request?",
        effects=[
            "It starts a run of the request that you write on the page Try a request, which shows its plan first."
        ],
        command="trainmaster submit request.yaml",
        button="Submit",
        back="/try",
        refusal="" if ask.form.get("text") else "Write the request first: on the page Try a request.",
    )


def submit(ask: Ask) -> Outcome:
    """Uploads the request, and waits until its run is recorded."""
    rules, prices = _rules(ask)
    run_id, is_recorded = submit_pasted(ask.source.clients, _given(ask), rules, prices)
    return Outcome(
        message=f"The run {run_id} has started."
        if is_recorded
        else f"{run_id} was sent, and is not recorded yet.",
        go_to=f"/runs/{quote(run_id)}" if is_recorded else "/runs",
        document={"run_id": run_id},
    )


def check_document(ask: Ask) -> list[dict[str, object]]:
    """What `trainmaster check -o json` prints."""
    _require_text(ask)
    return [_examined(ask).checked.document]


def _require_text(ask: Ask) -> None:
    """Refuse a body that does not hold what the addresses below /api/v1 take.

    Raises:
        WrongBody: it has no `text`.
    """
    if "text" not in ask.form:
        fields = ", ".join(repr(name[:40]) for name in list(ask.form)[:5]) or "nothing"
        raise WrongBody(f"Expected a form or a JSON object with text, and optionally file; found {fields}.")


def plan_document(ask: Ask) -> dict[str, Any]:
    """schemas/plan.v1.schema.json.

    Raises:
        Refused: the text has faults, or is no request; the message has every fault.
        WrongBody: there is no text.
    """
    _require_text(ask)
    found = _planned(ask)
    if found.plan is None:
        faults = [str(fault) for fault in found.checked.faults]
        raise Refused("\n".join(faults) or f"Expected a request, found a {found.checked.kind}.")
    return found.plan.document


_BODY = (
    Parameter(name="text", description="the request, a rule or an order, as YAML or JSON"),
    Parameter(name="file", description="the name of its file; JSON by its suffix"),
)
SUBJECT = Subject(
    pages=[
        PageRoute(path="/try", show=form),
        PageRoute(path="/try", show=planned, takes_form=True),
        PageRoute(path="/try/check", show=checked, takes_form=True),
    ],
    api=[
        ApiRoute(
            path="/check",
            summary="Every fault of a request, a rule or an order.",
            read=check_document,
            parameters=_BODY,
            takes_form=True,
        ),
        ApiRoute(
            path="/plan",
            summary="What would happen to a request, and why.",
            read=plan_document,
            schema="plan.v1",
            parameters=_BODY,
            takes_form=True,
        ),
    ],
    actions=[
        Action(path="/try/submit", summary="Submits the request `text`.", propose=propose, perform=submit)
    ],
)
