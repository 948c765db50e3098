"""Reads the champions, and restores earlier ones."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from trainmaster.client.errors import NotFound, Refused
from trainmaster.client.find import read_document
from trainmaster.client.nearest import nearest_names
from trainmaster.client.rules.orders import give_order
from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.champions.promotion import after_rollback, restorable_runs
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.names import champion_object, in_team

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

CHAMPIONS_MAX = 1000
_PREFIX = champion_object("").removesuffix(".json")


@dataclass(frozen=True, kw_only=True)
class FoundChampion:
    """A champion: the document for programs, schemas/champion.v1.schema.json, and the same for this code."""

    document: dict[str, Any]
    champion: Champion


def champion_names(clients: "Clients") -> tuple[list[str], list[str]]:
    """The names of the models that have a champion, sorted, and a problem if there are more than CHAMPIONS_MAX.

    Costs a listing.
    """
    bucket = clients.storage.bucket(clients.context.ledger_bucket)
    found = clients.storage.list_blobs(
        bucket, prefix=_PREFIX, max_results=CHAMPIONS_MAX + 1, fields="items(name),nextPageToken"
    )
    names = [blob.name.removeprefix(_PREFIX) for blob in found]
    more = [f"There are more than {CHAMPIONS_MAX:,} champions: only the first by name are listed."]
    known = [name.removesuffix(".json") for name in names[:CHAMPIONS_MAX] if name.endswith(".json")]
    return known, more if len(names) > CHAMPIONS_MAX else []


def champions_written(clients: "Clients") -> tuple[tuple[str, int], ...]:
    """The champions' objects and their generations: it changes whenever `list_champions` may. Costs a listing."""
    bucket = clients.storage.bucket(clients.context.ledger_bucket)
    found = clients.storage.list_blobs(
        bucket, prefix=_PREFIX, max_results=CHAMPIONS_MAX + 1, fields="items(name,generation),nextPageToken"
    )
    return tuple((blob.name, int(blob.generation)) for blob in found)


def changed_champions(clients: "Clients", most: int) -> list[FoundChampion]:
    """The champions whose reign began last, the newest first; costs a listing, and `most` reads at most.

    Looked for among the `most` documents that were written last. A verdict against a challenger is written as well, so a
    reign may be missing here although it is recent. Documents that cannot be read are left out.
    """
    bucket = clients.storage.bucket(clients.context.ledger_bucket)
    listed = clients.storage.list_blobs(
        bucket, prefix=_PREFIX, max_results=CHAMPIONS_MAX, fields="items(name,updated),nextPageToken"
    )
    written = sorted(listed, key=lambda blob: blob.updated, reverse=True)
    names = [blob.name.removeprefix(_PREFIX).removesuffix(".json") for blob in written[:most]]
    found: list[tuple[datetime, FoundChampion]] = []
    for name in names:
        with suppress(NotFound):
            each = _find(clients, name)
            if each is not None and each.champion.current is not None:
                found.append((each.champion.current.since, each))
    return [each for _, each in sorted(found, key=lambda pair: pair[0], reverse=True)]


def list_champions(clients: "Clients") -> tuple[list[FoundChampion], list[str]]:
    """Every champion, by model name, and a problem for each that cannot be read; costs one read each."""
    found: list[FoundChampion] = []
    names, problems = champion_names(clients)
    for name in names:
        try:
            each = _find(clients, name)
        except NotFound as damaged:
            problems.append(str(damaged))
        else:
            found += [each] if each is not None else []
    return found, problems


def find_champion(clients: "Clients", model_name: str) -> FoundChampion:
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


def _find(clients: "Clients", model_name: str) -> FoundChampion | None:
    document = read_document(clients, champion_object(model_name))
    if document is None:
        return None
    try:
        return FoundChampion(document=document, champion=decoded(Champion, document))
    except (KeyError, TypeError, ValueError) as error:
        raise NotFound(
            f"The champion of {model_name!r} is damaged, or of another version: {error}"
        ) from error


def rolled_back(champion: Champion, to_run: str | None) -> Champion | str:
    """The champion after `roll_back`, or why the service would refuse that."""
    return after_rollback(champion, to_run, order_id="", now=datetime.now(UTC))


def roll_back(clients: "Clients", model_name: str, to_run: str | None, *, timeout_s: float) -> FoundChampion:
    """Restore the champion before the current one, or that of `to_run`, and return the champion after that.

    Raises:
        NotFound: the model has no champion.
        Refused: there was none before, or `to_run` was never champion.
        TimedOut: the service has not answered in time.
    """
    found = find_champion(clients, model_name)
    restored = rolled_back(found.champion, to_run)
    if isinstance(restored, str):
        # The service says the same of the order, and would record that it refused it.
        other = next(iter(restorable_runs(found.champion)), None)
        repair = (
            f"\nTo restore another one: trainmaster champions rollback {model_name} --to-run {other}"
            if other is not None
            else ""
        )
        raise Refused(
            f"The champion of {model_name!r} stays: {restored}. "
            f"See: trainmaster champions show {model_name}{repair}"
        )
    back = {"model_name": found.champion.model_name} | ({"to_run": to_run} if to_run is not None else {})
    give_order(clients, {"rollback": back}, team=found.champion.team, timeout_s=timeout_s)
    return find_champion(clients, model_name)
