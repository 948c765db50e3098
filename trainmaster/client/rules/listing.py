"""Reads rules: the files in the inbox, the rule book, each rule's status and state, and what has arrived since a tick."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import PurePosixPath
from typing import TypeVar

from trainmaster.client.clients import Clients
from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_document
from trainmaster.client.nearest import nearest_names
from trainmaster.client.records import read_bytes
from trainmaster.client.rules.found_rule import FoundRule
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.names import RULES_PREFIX, in_team, is_rule_object, status_object
from trainmaster.orchestrator.core.retraining.arrivals import ARRIVALS_PREFIX, Batch, parse_batch
from trainmaster.orchestrator.core.retraining.book import BOOK_OBJECT, Book, parse_book
from trainmaster.orchestrator.core.retraining.condition import Schedule
from trainmaster.orchestrator.core.retraining.reading import rule_id_of
from trainmaster.orchestrator.core.retraining.rule import Rule, state_object
from trainmaster.orchestrator.core.retraining.state import RuleState, RuleStatus, state_for
from trainmaster.orchestrator.core.retraining.waiting import with_arrivals
from trainmaster.orchestrator.core.sizes import MAX_BATCH_BYTES, MAX_RULE_BYTES

FILES_MAX = 10_000
"""Objects below rules/ that are listed: those that a tick follows."""
BATCHES_MAX = 200
"""Batches that are read. A batch holds all events that came during one write, so more come only from a flood."""
READS_AT_ONCE = 8
_Value = TypeVar("_Value")


def list_rules(clients: Clients) -> list[FoundRule]:
    """Every accepted rule, and the files among the first FILES_MAX objects below rules/, by file name.

    Rules whose file is gone are listed until they are retired. A rule's counts include objects that no tick
    has counted yet.

    Costs a listing, a read of the book, a read of each status, and a read of the state of each rule that counts objects
    has never fired, or may have used up its `max_per_day`; with a rule that counts, another listing, and a read of each batch of arrivals.

    Raises:
        NotFound: the book of rules is damaged.
    """
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        rules = list(pool.map(partial(_with_status, clients, is_whole=False), _without_statuses(clients)))
        return _with_arrivals(clients, rules)


def find_rule(clients: Clients, text: str) -> FoundRule:
    """The rule with this id, or whose file has this name, with or without `rules/`; with its state.

    Raises:
        NotFound: no rule matches; the message names the nearest ids.
    """
    rules = _without_statuses(clients)
    own = in_team(clients.context.team, PurePosixPath(text).name)
    names = (text, f"{RULES_PREFIX}{text}", f"{RULES_PREFIX}{own}")
    for rule in rules:
        if rule.rule_id == text or rule.dropped_name in names:
            (found,) = _with_arrivals(clients, [_with_status(clients, rule, is_whole=True)])
            return found
    near = nearest_names(text, [rule.name for rule in rules])
    raise NotFound(
        f"No rule {text!r} in {clients.context.title}. {near or 'List those that there are: trainmaster rules ls'}"
    )


def read_book(clients: Clients) -> Book:
    """Every accepted rule; empty before the first.

    Raises:
        NotFound: the object is damaged.
    """
    document = read_document(clients, BOOK_OBJECT)
    try:
        return Book() if document is None else parse_book(document)
    except ValueError as error:
        raise NotFound(f"{BOOK_OBJECT} in {clients.context.title} is damaged: {error}") from error


def read_status(clients: Clients, dropped_name: str) -> RuleStatus | None:
    """The status of the drop with this name, or None if it is missing or unreadable for this version."""
    return _read(clients, RuleStatus, status_object(dropped_name))


def read_state(clients: Clients, rule_id: str) -> RuleState | None:
    """What the rule remembers, or None if its state is missing or unreadable for this version."""
    return _read(clients, RuleState, state_object(rule_id))


def _read(clients: Clients, kind: type[_Value], name: str) -> _Value | None:
    """The document, or None if it is missing, damaged, or of a version that cannot be read: the rule is listed without it."""
    try:
        document = read_document(clients, name)
        return None if document is None else decoded(kind, document)
    except (KeyError, TypeError, ValueError, NotFound):
        return None


@dataclass(frozen=True, kw_only=True)
class RuleFile:
    """The text of a rule's file. `is_judged`: it is the version that the rule's status is about."""

    text: str
    is_judged: bool


def read_rule_file(clients: Clients, rule: FoundRule) -> RuleFile | None:
    """The file in the inbox, the version that the status is about if it is still there; None if there is none.

    Costs at most two reads. Of a file that is too large for a rule, the beginning.
    """
    bucket = clients.context.inbox_bucket
    judged = [rule.status.generation] if rule.status is not None else []
    for generation in (*judged, None):
        content = read_bytes(
            clients.storage, bucket, rule.dropped_name, MAX_RULE_BYTES - 1, generation=generation
        )
        if content is not None:
            return RuleFile(text=content.decode(errors="replace"), is_judged=generation is not None)
    return None


def _without_statuses(clients: Clients) -> list[FoundRule]:
    book = read_book(clients)
    by_file = {rule.dropped_name: rule for rule in book.rules}
    files, listed_to = _files(clients)
    return [
        FoundRule(
            dropped_name=name,
            rule_id=rule_id_of(name),
            rule=by_file.get(name),
            # As for a tick: nothing is known about names behind those that were listed.
            has_file=name in files or (listed_to is not None and name > listed_to),
        )
        for name in sorted({*files, *by_file})
    ]


def _files(clients: Clients) -> tuple[set[str], str | None]:
    """The rules among the first objects, and the name of the last of these if there may be more."""
    bucket = clients.storage.bucket(clients.context.inbox_bucket)
    listed = clients.storage.list_blobs(bucket, prefix=RULES_PREFIX, fields="items(name),nextPageToken")
    names = [blob.name for blob in islice(listed, FILES_MAX)]
    rules = {name for name in names if is_rule_object(name)}
    return rules, names[-1] if len(names) == FILES_MAX else None


def _with_status(clients: Clients, rule: FoundRule, *, is_whole: bool) -> FoundRule:
    status = read_status(clients, rule.dropped_name)
    needs_state = is_whole or (rule.rule is not None and _needs_state(rule.rule, status))
    state = read_state(clients, rule.rule_id) if rule.rule_id and needs_state else None
    return replace(rule, status=status, state=state)


def _needs_state(rule: Rule, status: RuleStatus | None) -> bool:
    """Whether its counts, the firings that `max_per_day` counts, or the time since when it waits are to be shown."""
    may_be_used_up = status is not None and (status.firings or 0) >= rule.max_per_day
    is_scheduled = any(isinstance(each, Schedule) for each in rule.members)
    has_never_fired = status is not None and not status.firings  # since when, only its state says
    return bool(rule.new_data or rule.groups) or has_never_fired or (is_scheduled and may_be_used_up)


def _with_arrivals(clients: Clients, rules: Sequence[FoundRule]) -> list[FoundRule]:
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


def _batches(clients: Clients) -> list[Batch]:
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
