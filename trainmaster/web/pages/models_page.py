"""Models: the champion of each name, those before it, every challenger's verdict, and the way back to the data."""

import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from trainmaster.client.explaining.explanation import Explanation, explain_model
from trainmaster.client.files.listing import champion_files
from trainmaster.client.rules.champions import (
    FoundChampion,
    ListedModel,
    after_approval,
    after_roll_back,
    approve,
    champions_written,
    find_champion,
    list_champions,
    model_list,
    models_of,
    roll_back,
)
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.shown.champion_lines import lineage_facts, pending_lines, value_text
from trainmaster.client.shown.run_lines import approve_command
from trainmaster.orchestrator.core.champions.champion import Champion, Reign
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.web.pages.file_table import FileTable, file_table
from trainmaster.web.pages.runs import read_index
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import (
    ActionOutcome,
    ApiRoute,
    Ask,
    ConsoleAction,
    ConsolePage,
    ConsoleSubject,
    Field,
    PageRoute,
    Proposal,
)

REIGNS_SHOWN = 50
ANSWER_WITHIN_S = 60.0
APPROVE, REJECT = "approve", "reject"
RUNS_SCANNED, RUNS_SHOWN = 1000, 20
"""The newest runs, that are searched for those of the model, and how many of these are shown."""


def name_of(champion: Champion) -> str:
    """The name of the model, with the folder of its team."""
    return in_team(champion.team, champion.model_name)


def address_of(name: str) -> str:
    """The address of the page about the model."""
    return f"/models/{quote(name)}"


def champion_of(ask: Ask) -> FoundChampion:
    """The champion that the address names.

    Raises:
        NotFound: the model has none.
    """
    name = ask.path["name"]
    return ask.source.read(("champion", name), AnswerAge.SLOW, lambda clients: find_champion(clients, name))


def models(ask: Ask) -> ConsolePage:
    """All models, and the champion of each that has one."""
    found, _, problems = _read_models(ask)
    return ConsolePage(
        title="Models",
        template="models.html",
        values={"rows": [(each, _address_of_model(each)) for each in found], "problems": problems},
        command="trainmaster models",
    )


def _address_of_model(model: ListedModel) -> str:
    """The page about the champion; of a model without one, the list of its runs."""
    if model.champion is not None:
        return address_of(model.name)
    row = model.latest
    team = {"team": row.team} if row and row.team else {}
    return f"/runs?{urlencode({'model': row.model_name if row else model.name, **team})}"


def _read_models(ask: Ask) -> tuple[list[ListedModel], Sequence[IndexRow], list[str]]:
    rows = read_index(ask).rows
    champions, problems = _read_champions(ask)
    return models_of(rows, champions), rows, problems


def models_document(ask: Ask) -> dict[str, Any]:
    """schemas/model_list.v1.schema.json."""
    found, rows, _ = _read_models(ask)
    return model_list(found, rows)


def _read_champions(ask: Ask) -> tuple[list[FoundChampion], list[str]]:
    """Every champion: read again only when one of them was written, or the answer is old."""
    written = ask.source.read("champions-written", AnswerAge.SLOW, champions_written)
    return ask.source.read(("champions", written), AnswerAge.RARE, list_champions)


def model(ask: Ask) -> ConsolePage:
    """One model's champion, with its history, its challengers and its lineage."""
    champion = champion_of(ask).champion
    name = name_of(champion)
    filters = Filters(model=champion.model_name, team=champion.team)
    runs = ask.source.read(
        ("runs-of", name),
        AnswerAge.SLOW,
        lambda clients: list_runs(clients, filters, limit=RUNS_SHOWN, scanned_max=RUNS_SCANNED),
    )
    current = champion.current
    return ConsolePage(
        title=name,
        template="model.html",
        values={
            "name": name,
            "address": address_of(name),
            "champion": champion,
            "is_better": "higher" if current and current.contest.goal is Goal.MAXIMIZE else "lower",
            "reigns": list(_reigns(champion)),
            "reigns_left_out": max(len(champion.history) - REIGNS_SHOWN, 0),
            "challengers": champion.considered[::-1],
            "pending": pending_lines(champion),
            "steps": list(_lineage(_explanation(ask, name))) if current else [],
            "copy": _copy(ask, current) if current else None,
            "runs": runs.rows,
            "all_runs": f"/runs?{urlencode({'model': champion.model_name})}",
            "download": shlex.join(["trainmaster", "download", f"champion:{name}"]),
            "why": shlex.join(["trainmaster", "why", name]),
            "rollback": shlex.join(["trainmaster", "champions", "rollback", name]),
            "rollback_refusal": _refusal(champion, None),
        },
        command=shlex.join(["trainmaster", "champions", "show", name]),
    )


def _reigns(champion: Champion) -> Iterator[tuple[Reign, datetime | None, str]]:
    """The latest reigns, each with when the next one began, None for the current one, and the address that restores it."""
    until = None
    for reign in champion.history[::-1][:REIGNS_SHOWN]:
        yield reign, until, _restore_address(champion, reign)
        until = reign.since


def _restore_address(champion: Champion, reign: Reign) -> str:
    """The address of the order that restores an earlier reign; empty if it cannot be restored."""
    is_current = champion.current is not None and reign.run_id == champion.current.run_id
    if is_current or _refusal(champion, reign.run_id):
        return ""
    return f"{address_of(name_of(champion))}/-/rollback?{urlencode({'to_run': reign.run_id})}"


def _refusal(champion: Champion, to_run: str | None) -> str:
    """Why that run cannot be restored; empty if it can."""
    restored = after_roll_back(champion, to_run)
    return restored if isinstance(restored, str) else ""


def _explanation(ask: Ask, name: str) -> Explanation:
    return ask.source.read(
        ("why", name), AnswerAge.SLOW, lambda clients: explain_model(clients, name, ask.now)
    )


def _lineage(found: Explanation) -> Iterator[tuple[str, Sequence[str], str]]:
    """Each step back to the data: what it is, its lines, and the address of the page about it, if there is one."""
    reign = found.champion
    if reign is None:
        return
    addresses = {"run": f"/runs/{quote(reign.run_id, safe='')}"}
    if reign.lineage.rule_id:
        addresses["rule"] = f"/rules/{quote(reign.lineage.rule_id, safe='')}"
    values = found.record.source.firing_values if found.record else None
    for title, lines in lineage_facts(reign, values):
        is_gone = title == "run" and found.record is None
        yield title, [*lines, *(["its record is gone"] if is_gone else [])], addresses.get(title, "")


def _copy(ask: Ask, reign: Reign) -> FileTable:
    return ask.source.read(
        ("champion-files", reign.model_uri, reign.lineage.files_uri, reign.lineage.files_sha256),
        AnswerAge.RARE,
        lambda clients: file_table(lambda: champion_files(clients, reign)),
    )


def propose_rollback(ask: Ask) -> Proposal:
    """Which champion would return, and what follows."""
    champion = champion_of(ask).champion
    name, to_run = name_of(champion), ask.query.get("to_run") or None
    restored = after_roll_back(champion, to_run)
    reign = restored.current if isinstance(restored, Champion) else None
    words = ["trainmaster", "champions", "rollback", name, *(["--to-run", to_run] if to_run else [])]
    return Proposal(
        title=f"Roll back the champion of {name}?",
        effects=list(_effects(champion, reign)) if reign else [],
        command=shlex.join(words),
        button="Roll back",
        back=address_of(name),
        fields=[Field(name="to_run", label="Restore the run", value=reign.run_id, choices=[reign.run_id])]
        if reign
        else [],
        refusal=f"The champion stays: {restored}." if isinstance(restored, str) else "",
    )


def _effects(champion: Champion, restored: Reign) -> Iterator[str]:
    current = champion.current
    yield f"{restored.run_id} becomes champion again, with {value_text(restored)}; its copy is {restored.model_uri}"
    if current is not None:
        yield f"{current.run_id}, with {value_text(current)}, is champion no longer. Its copy stays."
    yield "Later runs are compared with the restored champion."
    yield "A notice trainmaster.champion.rolled_back.v1 is published, for whatever serves the model."


def rollback(ask: Ask) -> ActionOutcome:
    """Gives the order, and waits until it is carried out."""
    champion = champion_of(ask).champion
    name = name_of(champion)
    found = roll_back(
        ask.clients_of(champion.team), name, ask.form.get("to_run") or None, timeout_s=ANSWER_WITHIN_S
    )
    current = found.champion.current
    run_id = current.run_id if current else ""
    return ActionOutcome(
        message=f"{run_id} is the champion of {name}.", go_to=address_of(name), document={"run_id": run_id}
    )


def propose_approval(ask: Ask) -> Proposal:
    """What follows from the approval of the challenger that waits, or from its rejection."""
    champion = champion_of(ask).champion
    after, name = after_approval(champion, None, reject=False), name_of(champion)
    run_id = champion.pending.reign.run_id if champion.pending else ""
    return Proposal(
        title=f"Approve the challenger of {name}?",
        effects=[
            *pending_lines(champion)[:1],
            "Approved, it becomes champion, and a notice trainmaster.champion.promoted.v1 is published.",
            "Rejected, the champion stays.",
        ],
        command=approve_command(name, run_id),
        button="Decide",
        back=address_of(name),
        fields=[
            Field(name="run", label="The challenger", value=run_id, choices=[run_id]),
            Field(name="decision", label="Decision", value=APPROVE, choices=[APPROVE, REJECT]),
        ],
        refusal=f"The champion stays: {after}." if isinstance(after, str) else "",
    )


def decide(ask: Ask) -> ActionOutcome:
    """Gives the order, and waits until it is carried out."""
    champion = champion_of(ask).champion
    name, run_id, is_rejected = (
        name_of(champion),
        ask.form.get("run") or None,
        ask.form.get("decision") == REJECT,
    )
    found = approve(
        ask.clients_of(champion.team), name, run_id, reject=is_rejected, timeout_s=ANSWER_WITHIN_S
    )
    current = found.champion.current.run_id if found.champion.current else ""
    message = f"{current or 'No run'} is the champion of {name}."
    return ActionOutcome(message=message, go_to=address_of(name), document={"run_id": current})


SUBJECT = ConsoleSubject(
    pages=[PageRoute(path="/models", show=models), PageRoute(path="/models/{name:path}", show=model)],
    api=[
        ApiRoute(
            path="/models",
            summary="All models, with their newest run and their champion.",
            read=models_document,
            schema="model_list.v1",
        ),
        ApiRoute(
            path="/champions",
            summary="Every champion, as an array of champion.v1.",
            read=lambda ask: [each.document for each in _read_champions(ask)[0]],
        ),
        ApiRoute(
            path="/champions/{name:path}/-/explanation",
            summary="Where the champion of a model comes from.",
            read=lambda ask: _explanation(ask, ask.path["name"]).document,
            schema="explanation.v1",
        ),
        ApiRoute(
            path="/champions/{name:path}",
            summary="The champion of a model, its predecessors and the latest challengers; a team's is TEAM/MODEL.",
            read=lambda ask: champion_of(ask).document,
            schema="champion.v1",
        ),
    ],
    actions=[
        ConsoleAction(
            path="/models/{name:path}/-/rollback",
            summary="Restores an earlier champion: that of `to_run`, or without it the one before.",
            propose=propose_rollback,
            perform=rollback,
        ),
        ConsoleAction(
            path="/models/{name:path}/-/approve",
            summary="Promotes the challenger that waits for approval, that of `run`; or with `decision=reject` rejects it.",
            propose=propose_approval,
            perform=decide,
        ),
    ],
)
