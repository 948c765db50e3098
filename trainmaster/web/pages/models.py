"""Models: the champion of each name, those before it, every challenger's verdict, and the way back to the data."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from trainmaster.client.errors import Damaged, NotFound, Refused
from trainmaster.client.explaining.explanation import Explanation, explain_model
from trainmaster.client.files.listing import RemoteFile, champion_files
from trainmaster.client.rules.challengers import (
    ChallengerFacts,
    Reigned,
    read_challenger,
    reigns_of,
    verdicts_of,
)
from trainmaster.client.rules.champions import (
    FoundChampion,
    champions_written,
    find_champion,
    list_champions,
    roll_back,
)
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.terminal import size_text
from trainmaster.orchestrator.core.champions.champion import Champion, Reign, Verdict
from trainmaster.orchestrator.core.champions.promotion import after_rollback
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.requests.spec import Goal
from trainmaster.web.source import Age
from trainmaster.web.subject import (
    Action,
    ApiRoute,
    Ask,
    Field,
    Outcome,
    Page,
    PageRoute,
    Proposal,
    Subject,
)

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

REIGNS_SHOWN, RECORDS_READ, METRICS_SHOWN, FILES_SHOWN = 50, 20, 12, 200
RUNS_SCANNED, RUNS_SHOWN = 1000, 20
"""The newest runs, that are searched for those of the model, and how many of these are shown."""
BAR_UNITS = 1000
"""The width of the time from the first reign to now, in the units of the drawing."""
_STEPS = 32
ANSWER_WITHIN_S = 60.0


@dataclass(frozen=True, kw_only=True)
class ReignRow:
    """A reign with its bar: where it begins and how long it is, in BAR_UNITS."""

    reigned: Reigned
    since: str
    until: str
    start: int
    length: int
    restore: str
    """The address of the order that restores it; empty if it cannot be restored."""


@dataclass(frozen=True, kw_only=True)
class ChallengerRow:
    """A verdict; `facts` are from the run's record, of the latest challengers alone."""

    verdict: Verdict
    facts: ChallengerFacts | None


@dataclass(frozen=True, kw_only=True)
class CopyFiles:
    """The files of the champion's copy, or why they cannot be listed."""

    files: Sequence[RemoteFile] = ()
    left_out: int = 0
    size: str = ""
    problem: str = ""


def models(ask: Ask) -> Page:
    """The champion of each model."""
    found, problems = _listed(ask)
    rows = [(each.champion, _name(each.champion), _address(_name(each.champion))) for each in found]
    return Page(
        title="Models",
        template="models.html",
        values={"rows": rows, "problems": problems},
        command="trainmaster champions ls",
    )


def _listed(ask: Ask) -> tuple[list[FoundChampion], list[str]]:
    """Every champion: read again only when one of them was written, or the answer is old."""
    written = ask.source.read("champions-written", Age.SLOW, champions_written)
    return ask.source.read(("champions", written), Age.RARE, list_champions)


def _name(champion: Champion) -> str:
    return in_team(champion.team, champion.model_name)


def _address(name: str) -> str:
    return f"/models/{quote(name)}"


def model(ask: Ask) -> Page:
    """One model's champion, with its history, its challengers and its lineage."""
    champion = _find(ask).champion
    name = _name(champion)
    filters = Filters(model=champion.model_name, team=champion.team)
    runs = ask.source.read(
        ("runs-of", name),
        Age.SLOW,
        lambda clients: list_runs(clients, filters, limit=RUNS_SHOWN, scanned_max=RUNS_SCANNED),
    )
    current = champion.current
    return Page(
        title=name,
        template="model.html",
        values={
            "name": name,
            "address": _address(name),
            "champion": champion,
            "is_better": "higher" if current and current.contest.goal is Goal.MAXIMIZE else "lower",
            "reigns": list(_reign_rows(champion, ask.now)),
            "reigns_left_out": max(len(champion.history) - REIGNS_SHOWN, 0),
            "challengers": list(_challengers(ask, champion)),
            "metrics_shown": METRICS_SHOWN,
            "steps": list(_lineage(_explanation(ask, name))) if current else [],
            "copy": _copy(ask, current) if current else None,
            "runs": runs.rows,
            "all_runs": f"/runs?{urlencode({'model': champion.model_name})}",
            "download": shlex.join(["trainmaster", "download", f"champion:{name}"]),
            "why": shlex.join(["trainmaster", "why", name]),
            "rollback": shlex.join(["trainmaster", "champions", "rollback", name]),
            "rollback_refusal": _refusal(champion, None, ask.now),
        },
        command=shlex.join(["trainmaster", "champions", "show", name]),
    )


def _find(ask: Ask) -> FoundChampion:
    name = ask.path["name"]
    return ask.source.read(("champion", name), Age.SLOW, lambda clients: find_champion(clients, name))


def _reign_rows(champion: Champion, now: datetime) -> Iterator[ReignRow]:
    reigns = reigns_of(champion)[:REIGNS_SHOWN]
    if not reigns:
        return
    first = reigns[-1].reign.since
    whole = _rounded((now - first).total_seconds())
    current = champion.current.run_id if champion.current else None
    for each in reigns:
        start = (each.reign.since - first).total_seconds()
        end = (each.until - first).total_seconds() if each.until else whole
        run_id = each.reign.run_id
        query = urlencode({"to_run": run_id})
        may_return = run_id != current and not _refusal(champion, run_id, now)
        yield ReignRow(
            reigned=each,
            since=_minute(each.reign.since),
            until=_minute(each.until) if each.until else "",
            start=min(max(int(BAR_UNITS * start / whole), 0), BAR_UNITS),
            length=min(max(int(BAR_UNITS * (end - start) / whole), 4), BAR_UNITS),
            restore=f"{_address(_name(champion))}/-/rollback?{query}" if may_return else "",
        )


def _minute(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def _rounded(seconds: float) -> int:
    """Rounded up to a few of its leading bits, so that a page does not change with every second."""
    whole = max(int(seconds) + 1, 1)
    step = max(1, 1 << max(whole.bit_length() - _STEPS.bit_length(), 0))
    return -(-whole // step) * step


def _challengers(ask: Ask, champion: Champion) -> Iterator[ChallengerRow]:
    for number, verdict in enumerate(verdicts_of(champion)):
        facts = _facts(ask, verdict.run_id) if number < RECORDS_READ else None
        yield ChallengerRow(verdict=verdict, facts=facts)


def _facts(ask: Ask, run_id: str) -> ChallengerFacts:
    return ask.source.read(("challenger", run_id), Age.RARE, lambda clients: read_challenger(clients, run_id))


def _explanation(ask: Ask, name: str) -> Explanation:
    return ask.source.read(("why", name), Age.SLOW, lambda clients: explain_model(clients, name, ask.now))


def _lineage(found: Explanation) -> Iterator[tuple[str, list[str], str]]:
    """Each step back: what it is, its lines, and the page about it, if there is one."""
    reign = found.champion
    if reign is None:
        return
    lineage = reign.lineage
    source = found.record.source if found.record else None
    yield "Champion", [reign.model_uri, *_labelled("manifest sha256", lineage.manifest_sha256)], ""
    if reign.trained_uri:
        yield "Copied from", [reign.trained_uri], ""
    yield (
        "Run",
        [reign.run_id if found.run else f"{reign.run_id}: its record is gone"],
        _run_address(reign.run_id),
    )
    if lineage.job_name:
        yield "Job", [lineage.job_name, *_labelled("trial", lineage.trial_id)], ""
    yield "Image", [lineage.image, *([] if lineage.image_digest else ["a tag: no digest is known"])], ""
    if lineage.request_uri:
        yield "Request", [_with_generation(lineage.request_uri, lineage.request_generation)], ""
    if lineage.rule_id:
        yield (
            "Rule",
            [f"{lineage.rule_id}, firing {lineage.firing}"],
            f"/rules/{quote(lineage.rule_id, safe='')}",
        )
    yield "Event", [" ".join(filter(None, (lineage.source, lineage.event_id)))], ""
    if data := _data(reign, (source.firing_values if source else None) or {}):
        yield "Data", data, ""


def _run_address(run_id: str) -> str:
    return f"/runs/{quote(run_id, safe='')}"


def _labelled(label: str, value: str | None) -> list[str]:
    return [f"{label} {value}"] if value else []


def _with_generation(uri: str, generation: int | None) -> str:
    return uri if generation is None else f"{uri}#{generation}"


def _data(reign: Reign, values: Mapping[str, str]) -> list[str]:
    lineage = reign.lineage
    named = ", ".join(filter(None, (lineage.dataset, lineage.dataset_version, lineage.train_split)))
    count, newest, at = (values.get(f"data.{name}") for name in ("count", "newest_uri", "watermark"))
    return [
        *([named] if named else []),
        *([f"{count} objects since the firing before"] if count else []),
        *([f"the last one: {newest}{f', of {at}' if at else ''}"] if newest else []),
    ]


def _copy(ask: Ask, reign: Reign) -> CopyFiles:
    return ask.source.read(
        ("champion-files", reign.model_uri, reign.lineage.files_uri, reign.lineage.files_sha256),
        Age.RARE,
        lambda clients: _copied(clients, reign),
    )


def _copied(clients: "Clients", reign: Reign) -> CopyFiles:
    try:
        files = champion_files(clients, reign)
    except (Damaged, NotFound, Refused) as problem:
        return CopyFiles(problem=str(problem))
    return CopyFiles(
        files=files[:FILES_SHOWN],
        left_out=max(len(files) - FILES_SHOWN, 0),
        size=size_text(sum(each.size_bytes for each in files)),
    )


def _refusal(champion: Champion, to_run: str | None, now: datetime) -> str:
    """Why that run cannot be restored; empty if it can."""
    restored = after_rollback(champion, to_run, order_id="", now=now)
    return restored if isinstance(restored, str) else ""


def propose_rollback(ask: Ask) -> Proposal:
    """Which champion would return, and what follows."""
    champion = _find(ask).champion
    name, to_run = _name(champion), ask.query.get("to_run") or None
    restored = after_rollback(champion, to_run, order_id="", now=ask.now)
    reign = restored.current if isinstance(restored, Champion) else None
    words = ["trainmaster", "champions", "rollback", name, *(["--to-run", to_run] if to_run else [])]
    return Proposal(
        title=f"Roll back the champion of {name}?",
        effects=list(_effects(champion, reign)) if reign else [],
        command=shlex.join(words),
        button="Roll back",
        back=_address(name),
        fields=[Field(name="to_run", label="Restore the run", value=reign.run_id, choices=[reign.run_id])]
        if reign
        else [],
        refusal=f"The champion stays: {restored}." if isinstance(restored, str) else "",
    )


def _effects(champion: Champion, restored: Reign) -> Iterator[str]:
    current = champion.current
    value = f"{restored.contest.metric} {restored.value:g}"
    yield f"{restored.run_id} becomes champion again, with {value}; its copy is {restored.model_uri}"
    if current is not None:
        yield f"{current.run_id}, with {current.contest.metric} {current.value:g}, is champion no longer. Its copy stays."
    yield "Later runs are compared with the restored champion."
    yield "A notice trainmaster.champion.rolled_back.v1 is published, for whatever serves the model."


def rollback(ask: Ask) -> Outcome:
    """Gives the order, and waits until it is carried out."""
    champion = _find(ask).champion
    name = _name(champion)
    found = roll_back(ask.source.clients, name, ask.form.get("to_run") or None, timeout_s=ANSWER_WITHIN_S)
    current = found.champion.current
    run_id = current.run_id if current else ""
    return Outcome(
        message=f"{run_id} is the champion of {name}.", go_to=_address(name), document={"run_id": run_id}
    )


def documents(ask: Ask) -> list[dict[str, Any]]:
    """Of each champion that can be read, schemas/champion.v1.schema.json."""
    return [each.document for each in _listed(ask)[0]]


def document(ask: Ask) -> dict[str, Any]:
    """schemas/champion.v1.schema.json."""
    return _find(ask).document


def explanation(ask: Ask) -> dict[str, Any]:
    """schemas/explanation.v1.schema.json."""
    return _explanation(ask, ask.path["name"]).document


SUBJECT = Subject(
    pages=[
        PageRoute(path="/models", show=models),
        PageRoute(path="/models/{name:path}", show=model),
    ],
    api=[
        ApiRoute(path="/champions", summary="Every champion, as an array of champion.v1.", read=documents),
        ApiRoute(
            path="/champions/{name:path}/-/explanation",
            summary="Where the champion of a model comes from.",
            read=explanation,
            schema="explanation.v1",
        ),
        ApiRoute(
            path="/champions/{name:path}",
            summary="The champion of a model, its predecessors and the latest challengers; a team's is TEAM/MODEL.",
            read=document,
            schema="champion.v1",
        ),
    ],
    actions=[
        Action(
            path="/models/{name:path}/-/rollback",
            summary="Restores an earlier champion: that of `to_run`, or without it the one before.",
            propose=propose_rollback,
            perform=rollback,
        )
    ],
)
