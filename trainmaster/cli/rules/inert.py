"""Why a rule may never fire, as far as its user can see: what it waits for is not there yet, and what is near it."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial

from trainmaster.client.clients import Clients
from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_run
from trainmaster.client.nearest import nearest_names
from trainmaster.client.rules.champions import champion_names
from trainmaster.client.rules.listing import read_book
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.orchestrator.core.names import in_team, split_object_uri
from trainmaster.orchestrator.core.policy.policy import repository
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.condition import Alert, NewImage, Upstream
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule

NAMES_MAX = 1000
"""Names beside the pattern, and runs of the index, that are compared."""
RUNS_SCANNED_MAX = 5000
FIRINGS_MAX = 20
"""Records of the newest firings that are searched for signals."""


def inert_notes(clients: Clients, dropped_names: Collection[str]) -> Iterator[str]:
    """A sentence for each condition of these files' accepted rules that waits for something of which there is no sign.

    Costs a read of the book, and up to FIRINGS_MAX reads or a few listings for each condition. What the user may not ask
    for counts as existing.
    """
    from google.api_core.exceptions import GoogleAPICallError

    book, signals = read_book(clients), cache(partial(_signals_on_record, clients))
    for rule in book.rules:
        for member in rule.members if rule.dropped_name in dropped_names else ():
            note = ""
            with suppress(GoogleAPICallError):
                match member:
                    case NewData():
                        note = _data_note(clients, member)
                    case Upstream():
                        note = _upstream_note(clients, book, rule, member)
                    case NewImage() | Alert():
                        note = _signal_note(member, signals())
            if note:
                yield f"{rule.rule_id} {note}".rstrip()


def _data_note(clients: Clients, condition: NewData) -> str:
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


def _upstream_note(clients: Clients, book: Book, rule: Rule, condition: Upstream) -> str:
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


def _signal_note(condition: NewImage | Alert, signals: Collection[Mapping[str, str]]) -> str:
    """Why such a signal may never come: those of its kind that fired rules were others."""
    named = replace(condition, model=None) if isinstance(condition, Alert) else condition
    is_by_model = isinstance(condition, Alert) and condition.policy is None
    signals = [facts for facts in signals if ("tag" in facts) == isinstance(condition, NewImage)]
    if is_by_model or not signals or any(map(named.matches, signals)):
        return ""
    known = {facts.get("policy") or f"{facts['repository']}:{facts['tag']}" for facts in signals}
    near = nearest_names(named.detail, known)
    return f"waits for {condition}, but rules were fired by others. {near}"


def _signals_on_record(clients: Clients) -> list[dict[str, str]]:
    """The facts of the pushes and alerts that are behind the newest firings of all rules."""
    rows = list_runs(clients, Filters(), limit=NAMES_MAX, scanned_max=NAMES_MAX).rows
    facts: list[dict[str, str]] = []
    for row in [row for row in rows if row.source == "rule"][:FIRINGS_MAX]:
        with suppress(NotFound):
            values = read_run(clients, row.run_id).record.source.firing_values or {}
            if "image.uri" in values:
                facts.append({"repository": repository(values["image.uri"]), "tag": values["image.tag"]})
            if "alert.policy" in values:
                facts.append({"policy": values["alert.policy"], "models": ""})
    return facts
