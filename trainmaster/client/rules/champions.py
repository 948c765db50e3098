"""All models, their champions, how long each reigned, and the order that restores an earlier one."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.find import read_document, read_run
from trainmaster.client.nearest import nearest_names
from trainmaster.client.rules.orders import give_order
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.orchestrator.core.champions.champion import Champion, Reign
from trainmaster.orchestrator.core.champions.promotion import after_decision, after_rollback, restorable_runs
from trainmaster.orchestrator.core.completion.steps import CHAMPION, REGISTRY, is_over
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.names import champion_object, in_team
from trainmaster.orchestrator.core.orders.order import ApproveOrder
from trainmaster.orchestrator.core.runs.end import EVALUATION
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.states import RunState

MODEL_LIST_SCHEMA = "model_list.v1"
CHAMPIONS_MAX = 1000
_SUCCEEDED = frozenset({RunState.SUCCEEDED.value})
_PREFIX = champion_object("").removesuffix(".json")


@dataclass(frozen=True, kw_only=True)
class FoundChampion:
    """A champion: the document for programs, schemas/champion.v1.schema.json, and the same for this code."""

    document: dict[str, Any]
    champion: Champion


def champion_names(clients: Clients) -> tuple[list[str], list[str]]:
    """The names of the models that have a champion, sorted, and a problem if there are more than CHAMPIONS_MAX.

    Costs a listing.
    """
    names = [blob.name.removeprefix(_PREFIX) for blob in _documents(clients, "name")]
    more = [f"There are more than {CHAMPIONS_MAX:,} champions: only the first by name are listed."]
    known = [name.removesuffix(".json") for name in names[:CHAMPIONS_MAX] if name.endswith(".json")]
    return known, more if len(names) > CHAMPIONS_MAX else []


def champions_written(clients: Clients) -> tuple[tuple[str, int], ...]:
    """The champions' objects and their generations: it changes whenever `list_champions` may. Costs a listing."""
    return tuple((blob.name, int(blob.generation)) for blob in _documents(clients, "name,generation"))


def changed_champions(clients: Clients, most: int) -> list[FoundChampion]:
    """The champions whose reign began last, the newest first; costs a listing, and `most` reads at most.

    Looked for among the `most` documents that were written last. A verdict against a challenger is written as well, so a
    reign may be missing here although it is recent. Documents that cannot be read are left out.
    """
    written = sorted(_documents(clients, "name,updated"), key=lambda blob: blob.updated, reverse=True)
    reigning: list[tuple[datetime, FoundChampion]] = []
    for blob in written[:most]:
        with suppress(NotFound):
            champion = _find(clients, blob.name.removeprefix(_PREFIX).removesuffix(".json"))
            if champion is not None and champion.champion.current is not None:
                reigning.append((champion.champion.current.since, champion))
    return [champion for _, champion in sorted(reigning, key=lambda pair: pair[0], reverse=True)]


def _documents(clients: Clients, fields: str) -> Iterable[Any]:  # Any: the library's blobs carry no types
    """The champions' objects by name, at most one more than CHAMPIONS_MAX."""
    bucket = clients.storage.bucket(clients.context.ledger_bucket)
    listed: Iterable[Any] = bucket.list_blobs(
        prefix=_PREFIX, max_results=CHAMPIONS_MAX + 1, fields=f"items({fields}),nextPageToken"
    )
    return listed


def list_champions(clients: Clients) -> tuple[list[FoundChampion], list[str]]:
    """Every champion, by model name, and a problem for each that cannot be read; costs one read each."""
    found: list[FoundChampion] = []
    names, problems = champion_names(clients)
    for name in names:
        try:
            found += filter(None, [_find(clients, name)])
        except NotFound as damaged:
            problems.append(str(damaged))
    return found, problems


def find_champion(clients: Clients, model_name: str) -> FoundChampion:
    """The champion of this model: its name, of a team's model `<team>/<name>` or the name alone for the context's team.

    Raises:
        NotFound: it has none.
    """
    found = _find(clients, model_name if "/" in model_name else in_team(clients.context.team, model_name))
    if found is None:
        near = nearest_names(model_name, champion_names(clients)[0])
        raise NotFound(
            f"{model_name!r} has no champion in {clients.context.title}. "
            f"{near or 'List those that there are: trainmaster champions ls'}"
        )
    return found


def run_in_progress(clients: Clients, champion: Champion) -> str | None:
    """The newest succeeded run of the model, if its model is still being scored, compared or registered; else None.

    A run that waits for approval is the document's own. Costs a read of the run, and a listing of the index, a thousand
    runs for each storage operation.
    """
    filters = Filters(states=_SUCCEEDED, model=champion.model_name, team=champion.team)
    newest = next(iter(list_runs(clients, filters, limit=1).rows), None)
    waits = (
        champion.pending is not None and newest is not None and champion.pending.reign.run_id == newest.run_id
    )
    if newest is None or waits or newest.team != champion.team:
        return None
    try:
        record = read_run(clients, newest.run_id).record
    except NotFound:  # removed or damaged: nothing is known about it
        return None
    steps = (EVALUATION, CHAMPION, REGISTRY)
    return None if all(is_over(record, step) for step in steps) else newest.run_id


def find_reigning(clients: Clients, model_name: str) -> tuple[FoundChampion, Reign]:
    """The same, and its present reign. NotFound: it has none at present."""
    found = find_champion(clients, model_name)
    if found.champion.current is None:
        raise NotFound(f"{model_name!r} has no champion at present: trainmaster champions show {model_name}")
    return found, found.champion.current


def _find(clients: Clients, model_name: str) -> FoundChampion | None:
    document = read_document(clients, champion_object(model_name))
    if document is None:
        return None
    try:
        return FoundChampion(document=document, champion=decoded(Champion, document))
    except (KeyError, TypeError, ValueError) as error:
        raise NotFound(
            f"The champion of {model_name!r} is damaged, or of another version: {error}"
        ) from error


def after_roll_back(champion: Champion, to_run: str | None) -> Champion | str:
    """The champion after `roll_back`, or why the service would refuse that."""
    return after_rollback(champion, to_run, order_id="", now=datetime.now(UTC))


def roll_back(clients: Clients, model_name: str, to_run: str | None, *, timeout_s: float) -> FoundChampion:
    """Restore the champion before the current one, or that of `to_run`, and return the champion after that.

    Raises:
        NotFound: the model has no champion.
        ClientRefused: there was none before, or `to_run` was never champion.
        TimedOut: the service has not answered in time.
    """
    found = find_champion(clients, model_name)
    restored = after_roll_back(found.champion, to_run)
    if isinstance(restored, str):
        # The service says the same of the order, and would record that it refused it.
        other = next(iter(restorable_runs(found.champion)), None)
        repair = f"\nTo restore another one: trainmaster champions rollback {model_name} --to-run {other}"
        raise ClientRefused(
            f"The champion of {model_name!r} stays: {restored}. "
            f"See: trainmaster champions show {model_name}{repair if other is not None else ''}"
        )
    back = {"model_name": found.champion.model_name} | ({"to_run": to_run} if to_run is not None else {})
    give_order(clients, {"rollback": back}, team=found.champion.team, timeout_s=timeout_s)
    return find_champion(clients, model_name)


def after_approval(champion: Champion, run_id: str | None, *, reject: bool) -> Champion | str:
    """The champion after `approve`, or why the service would refuse that."""
    order = ApproveOrder(order_id="", model_name=champion.model_name, run_id=run_id, is_rejected=reject)
    return after_decision(champion, order, None, datetime.now(UTC))


def approve(
    clients: Clients, model_name: str, run_id: str | None, *, reject: bool, timeout_s: float
) -> FoundChampion:
    """Promote the challenger that waits for it, or reject it, and return the champion after that.

    Raises:
        NotFound: the model has neither a champion nor a challenger.
        ClientRefused: no challenger waits, or another one than that of `run_id`, or it is not better any more.
        TimedOut: the service has not answered in time.
    """
    found = find_champion(clients, model_name)
    after = after_approval(found.champion, run_id, reject=reject)
    if isinstance(after, str):
        raise ClientRefused(
            f"The champion of {model_name!r} stays: {after}. See: trainmaster champions show {model_name}"
        )
    # The run that was seen: another challenger may have taken its place meanwhile.
    seen = found.champion.pending.reign.run_id if found.champion.pending else run_id
    words = {"model_name": found.champion.model_name, "run": seen, "reject": reject}
    give_order(clients, {"approve": words}, team=found.champion.team, timeout_s=timeout_s)
    return find_champion(clients, model_name)


@dataclass(frozen=True, kw_only=True)
class ListedModel:
    """A model: how many of the runs that were read are its, the newest of them, and its champion."""

    name: str
    """With the folder of its team."""
    runs: int
    latest: IndexRow | None
    """None if no run of it was read."""
    champion: FoundChampion | None

    @property
    def document(self) -> dict[str, Any]:
        """An entry of schemas/model_list.v1.schema.json."""
        latest = {} if self.latest is None else {"latest_run": encoded(self.latest)}
        champion = {} if self.champion is None else {"champion": self.champion.document}
        return {"name": self.name, "runs": self.runs, **latest, **champion}


def models_of(rows: Iterable[IndexRow], champions: Iterable[FoundChampion]) -> list[ListedModel]:
    """The models of these runs, which are newest first, and of these champions, by name."""
    runs: dict[str, list[IndexRow]] = {}
    for row in rows:
        if row.model_name is not None:
            runs.setdefault(in_team(row.team, row.model_name), []).append(row)
    by_name = {in_team(each.champion.team, each.champion.model_name): each for each in champions}
    return [
        ListedModel(
            name=name,
            runs=len(own := runs.get(name, [])),
            latest=own[0] if own else None,
            champion=by_name.get(name),
        )
        for name in sorted(runs.keys() | by_name.keys())
    ]


def model_list(models: Iterable[ListedModel], rows: Sequence[IndexRow]) -> dict[str, Any]:
    """schemas/model_list.v1.schema.json."""
    return {"schema": MODEL_LIST_SCHEMA, "models": [each.document for each in models], "scanned": len(rows)}
