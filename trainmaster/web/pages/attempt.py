"""Try a request: its faults, its plan and cost as it is typed, and its submission."""

import shlex
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from trainmaster.client.errors import ClientRefused
from trainmaster.client.plan.facts import named_runs, plan_facts
from trainmaster.client.plan.plan import Plan, plan_of, plan_with_ledger
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.kinds import FileKind, use_of
from trainmaster.client.submission.send import start_run
from trainmaster.client.submission.source import STDIN, pasted_source
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.orchestrator.core.documents.faults import MAX_FAULTS
from trainmaster.orchestrator.core.documents.placing import position
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES
from trainmaster.resources import EDITOR_LINE, ROOT
from trainmaster.web.faults import WrongBody, WrongQuery
from trainmaster.web.people import senders_teams
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import (
    ActionOutcome,
    ApiRoute,
    Ask,
    ConsoleAction,
    ConsolePage,
    ConsoleSubject,
    PageRoute,
    Proposal,
    QueryParameter,
)

EXAMPLES: Mapping[str, tuple[str, str]] = {
    "hello": ("examples/hello.yaml", "A first training, without data"),
    "small": ("examples/small.yaml", "A training on pictures"),
    "distributed": ("examples/cassava.yaml", "Several workers with GPUs"),
    "tuning": ("examples/tuning.yaml", "A tuning with six trials"),
    "roles": ("examples/roles.yaml", "Parameter servers and an evaluator"),
    "vertex": ("examples/vertex/custom-job.yaml", "gcloud's form of a custom job"),
    "ai-platform": ("examples/ai_platform/config.yaml", "AI Platform's form"),
    "rule": ("examples/rules/new-data.yaml", "A retraining rule, to check"),
}
"""By the name in the address: the file, and what it is."""
EXAMPLES_PROJECT = "my-project"
PREPARATION: Mapping[str, str] = {
    "small": "This training reads the data set horses_or_humans from gs://PROJECT-data/tfds, and needs TensorFlow."
    " For a local stack, docs/reference/local-stack.md, “Submit a request”, says how to prepare both."
}
"""What an example needs before it can succeed, by its name."""
_NAMES = {FileKind.REQUEST: "request.yaml", FileKind.RULE: "rule.yaml", FileKind.ORDER: "order.yaml"}


def form(ask: Ask) -> ConsolePage:
    """The empty form, or with an example in it."""
    name = ask.query.get("example", "")
    if not name:
        return _page(ask, None)
    if name not in EXAMPLES:
        raise WrongQuery(f"example: expected one of {', '.join(EXAMPLES)}, found {name[:40]!r}")
    return _page(ask, None, example=example(name, ask.source.context.project))


def example(name: str, project: str) -> tuple[str, str, str]:
    """The text of an example for a project, the name of its file, and what it needs before it can succeed, or empty."""
    text = _example_text(name).replace(EXAMPLES_PROJECT, project)
    return text, PurePath(EXAMPLES[name][0]).name, PREPARATION.get(name, "").replace("PROJECT", project)


@cache
def _example_text(name: str) -> str:
    """The example without the line that names its schema to editors."""
    text = (ROOT / EXAMPLES[name][0]).read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    return rest if first.startswith(EDITOR_LINE) else text


def examined_page(ask: Ask, *, reads_ledger: bool) -> ConsolePage:
    """The faults and the plan, or what prevents a look, such as the name of the file.

    With `reads_ledger`, the plan has what the ledger shows now. Without, the page is for each pause of the typist, and costs
    at most one read in ten minutes.
    """
    try:
        found = _examination(ask)
    except ClientRefused as refused:
        return _page(ask, None, problem=str(refused))
    if reads_ledger:
        return _page(ask, found, plan=plan_with_ledger(ask.source.clients, found, now=ask.now))
    return _page(ask, found, plan=plan_of(found), loads_more=ask.source.is_local)


def _examination(ask: Ask) -> Examination:
    teams = senders_teams(ask.source, ask.person)
    team = ask.form.get("team") or (teams[0] if len(teams) == 1 else None)
    if teams and team is None:
        raise ClientRefused(f"Choose the team for which you send it: {', '.join(teams)}.")
    clients = ask.clients_of(team) if ask.person and team else None
    terms = deployed_terms(clients) if clients else ask.source.read("terms", AnswerAge.RARE, deployed_terms)
    return examination_of(pasted_source(ask.form.get("text", ""), ask.form.get("file", "")), terms)


def _page(
    ask: Ask,
    found: Examination | None,
    *,
    plan: Plan | None = None,
    problem: str = "",
    example: tuple[str, str, str] | None = None,
    loads_more: bool = False,
) -> ConsolePage:
    text, file, needs = example or (ask.form.get("text", ""), ask.form.get("file", ""), "")
    kind = found.kind if found else FileKind.REQUEST
    name = _NAMES[kind] if found is None or found.source.file == STDIN else found.source.file
    is_capped = plan is not None and plan.outlook is not None and plan.outlook.verdict == "refused"
    verb = "plan" if kind is FileKind.REQUEST else "check"
    return ConsolePage(
        title="Try a request",
        template="try.html",
        values={
            "text": text,
            "file": file,
            "teams": senders_teams(ask.source, ask.person),
            "team": ask.form.get("team", ""),
            "examples": [(key, title) for key, (_, title) in EXAMPLES.items()],
            "problem": problem,
            "needs": needs,
            "found": found,
            "faults": list(_shown_faults(found)) if found else [],
            "plan": plan,
            "facts": list(plan_facts(plan)) if plan else [],
            "runs": named_runs(plan) if plan else [],
            "elsewhere": f"This is {use_of(kind, name)}" if found and kind is not FileKind.REQUEST else "",
            "has_script": found is not None and found.has_local_script,
            "may_submit": found is not None and not found.refusal and not is_capped,
            "loads_more": loads_more and plan is not None,
            "submit_command": f"trainmaster submit {shlex.quote(name)}",
            "bytes_max": MAX_REQUEST_BYTES,
        },
        command=f"trainmaster {verb} {shlex.quote(name)}",
        is_final=True,
    )


def _shown_faults(found: Examination) -> Iterator[dict[str, Any]]:
    """Each with its level, and its line with a mark below; in the order of the text, at most MAX_FAULTS of each level."""
    for level, faults in (("error", found.faults), ("warning", found.warnings)):
        for fault in sorted(faults[:MAX_FAULTS], key=position):
            excerpt = fault.place.excerpt if fault.place else None
            yield {"fault": fault, "level": level, "excerpt": excerpt}


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


def submit(ask: Ask) -> ActionOutcome:
    """Uploads the request, and waits until its run is recorded.

    Raises:
        ClientRefused: it is not a sound request, or needs a script of this machine; or the service refuses it.
        TimedOut: the service has not read the previous request of that name yet.
    """
    found = _examination(ask)
    sent, is_recorded = start_run(ask.clients_of(found.terms.team), found)
    return ActionOutcome(
        message=f"The run {sent.run_id} has started."
        if is_recorded
        else f"{sent.run_id} was sent, and is not recorded yet.",
        go_to=f"/runs{'/' if sent.runs is None else '?group='}{quote(sent.run_id)}"
        if is_recorded
        else "/runs",
        document={"run_id": sent.run_id},
    )


def check_document(ask: Ask) -> list[dict[str, object]]:
    """What `trainmaster check -o json` prints."""
    _require_text(ask)
    return [_examination(ask).document]


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
        ClientRefused: the text has faults, or is not a request; the message has every fault.
        WrongBody: there is no text.
    """
    _require_text(ask)
    found = _examination(ask)
    plan = plan_with_ledger(ask.source.clients, found, now=ask.now)
    if plan is None:
        raise ClientRefused(found.refusal)
    return plan.document


_BODY = (
    QueryParameter(name="text", description="the request, a rule or an order, as YAML or JSON"),
    QueryParameter(name="file", description="the name of its file; JSON by its suffix"),
    QueryParameter(name="team", description="in a team's console: the team for which it is sent"),
)
SUBJECT = ConsoleSubject(
    pages=[
        PageRoute(path="/try", show=form),
        PageRoute(path="/try", show=partial(examined_page, reads_ledger=True), takes_form=True),
        PageRoute(path="/try/check", show=partial(examined_page, reads_ledger=False), takes_form=True),
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
        ConsoleAction(
            path="/try/submit", summary="Submits the request `text`.", propose=propose, perform=submit
        )
    ],
)
