"""Why a rule may never fire, as far as its user can see: what it waits for is not there yet, and what is near it."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from trainmaster.client.nearest import nearest_names
from trainmaster.client.rules.champions import champion_names
from trainmaster.client.rules.listing import read_book
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.orchestrator.core.names import in_team, split_object_uri
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.condition import Upstream
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

NAMES_MAX = 1000
"""Names beside the pattern, and runs of the index, that are compared."""
RUNS_SCANNED_MAX = 5000


def inert_notes(clients: "Clients", dropped_names: Collection[str]) -> Iterator[str]:
    """A sentence for each condition of these files' accepted rules that waits for something of which there is no sign.

    Costs a read of the book, and a few listings for each condition. What the user may not ask for counts as existing.
    """
    from google.api_core.exceptions import GoogleAPICallError

    book = read_book(clients)
    for rule in book.rules:
        for member in rule.members if rule.dropped_name in dropped_names else ():
            note = ""
            with suppress(GoogleAPICallError):
                match member:
                    case NewData():
                        note = _data_note(clients, member)
                    case Upstream():
                        note = _upstream_note(clients, book, rule, member)
            if note:
                yield f"{rule.rule_id} {note}".rstrip()


def _data_note(clients: "Clients", condition: NewData) -> str:
    """Why no object can match: there is no bucket, or no name that begins like the pattern."""
    bucket, pattern = split_object_uri(condition.pattern)
    if not clients.storage.bucket(bucket).exists():
        return f"watches gs://{bucket}, which does not exist. Create the bucket, or correct `objects`."
    prefix = pattern.partition("*")[0]
    if any(clients.storage.list_blobs(bucket, prefix=prefix, max_results=1)):
        return ""
    parent, slash, _ = prefix.rstrip("/").rpartition("/")
    beside = clients.storage.list_blobs(bucket, prefix=parent + slash, delimiter="/", max_results=NAMES_MAX)
    names = {blob.name for blob in beside} | set(beside.prefixes)
    return f"watches {condition.objects}, and no object's name begins with {prefix!r} yet. {nearest_names(prefix, names)}"


def _upstream_note(clients: "Clients", book: Book, rule: Rule, condition: Upstream) -> str:
    """Why the model may never come: no rule trains it, no run did, and it has no champion."""
    name, team = condition.model_name, rule.team
    if any((other.model_name, other.team) == (name, team) for other in book.rules):
        return ""
    champions = champion_names(clients)[0]
    filters, folder = Filters(model=name, team=team), in_team(team, "")
    if folder + name in champions or list_runs(clients, filters, limit=1, scanned_max=RUNS_SCANNED_MAX).rows:
        return ""
    newest = list_runs(clients, Filters(team=team), limit=NAMES_MAX, scanned_max=NAMES_MAX).rows
    models = {row.model_name for row in newest if row.model_name is not None}
    models |= {champion.removeprefix(folder) for champion in champions if champion.startswith(folder)}
    return f"waits for {condition}, and there is no run and no champion of {name} yet. {nearest_names(name, models)}"
