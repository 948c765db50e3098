"""Counts the objects that have arrived since the last tick, as the next tick will."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from trainmaster.client.records import read_bytes
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.orchestrator.core.retraining.arrivals import ARRIVALS_PREFIX, Batch, parse_batch
from trainmaster.orchestrator.core.retraining.state import state_for
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals
from trainmaster.orchestrator.core.sizes import MAX_BATCH_BYTES

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

BATCHES_MAX = 200
"""Batches that are read. A batch holds all events that came during one write, so more come only from a flood."""
READS_AT_ONCE = 8


def rules_with_arrivals(clients: "Clients", rules: Sequence[FoundRule]) -> list[FoundRule]:
    """The rules with the objects of the first BATCHES_MAX batches in their counts. Writes nothing.

    Their states must have been read before: a batch is deleted once it is in the states of all rules.
    """
    if not any(map(_counts, rules)):
        return list(rules)
    batches, now = _batches(clients), datetime.now(UTC)
    return [_with_counts(rule, batches, now) if _counts(rule) else rule for rule in rules]


def _counts(rule: FoundRule) -> bool:
    version = rule.rule
    return version is not None and bool(version.new_data) and version.enabled and version.quarantine is None


def _with_counts(rule: FoundRule, batches: Sequence[Batch], now: datetime) -> FoundRule:
    if rule.rule is None:
        return rule
    before = state_for(rule.rule, rule.state, now)
    after = with_arrivals(before, rule.rule, batches)
    if after is before:
        return rule
    return replace(rule, state=replace(rule.state or before, watched=after.watched, waiting=after.waiting))


def _batches(clients: "Clients") -> list[Batch]:
    bucket = clients.context.ledger_bucket
    listed = clients.storage.list_blobs(bucket, prefix=ARRIVALS_PREFIX, fields="items(name),nextPageToken")
    names = [blob.name for blob in islice(listed, BATCHES_MAX)]

    def read(name: str) -> Batch | None:
        content = read_bytes(clients.storage, bucket, name, MAX_BATCH_BYTES - 1)
        try:
            return None if content is None else parse_batch(name, content)  # a tick has counted it
        except ValueError:  # it is not a batch
            return None

    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        return [batch for batch in pool.map(read, names) if batch is not None]
