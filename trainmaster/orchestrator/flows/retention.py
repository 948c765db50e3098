"""The policy's retention, applied by the tick once a day, or when an order asks for it.

    round     names what goes of the next runs of the index: decided before anything is removed, and continued by the
              next tick whatever happens to this one
    record    says since when the checkpoints or the model are removed
    objects   of the run's output directory, then those beside its record, and its row
    record    if it goes too: what is left keeps a late event from starting a second run

All is safe to repeat. A tick spends CLEANS_S on it; without the policy's `retention` it costs nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import takewhile

from trainmaster.orchestrator.core.errors import (
    GenerationMoved,
    RecordDamaged,
    RecordUnsupported,
    TrainmasterError,
)
from trainmaster.orchestrator.core.policy.retention import Part, Retention
from trainmaster.orchestrator.core.retention.cleaning import (
    NEW_WITHIN,
    OF_RULE,
    REIGNED,
    Round,
    decide,
    mentioned_runs,
    prefixes_of,
    runs_in,
    tombstone,
    with_mark,
)
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.stores.ledger import Held, Marker
from trainmaster.orchestrator.stores.retention import HeldRound

CLEANS_FOR = timedelta(seconds=20)
"""Of a tick. What is left continues with the next one."""
DECIDED_AT_ONCE = 200
"""Runs that are read between two writes of the round."""

NEW_MAX = 10_000
"""Runs that begin during a round and in the hour before."""


def clean(services: Services) -> Iterator[FlowResult]:
    """Continue the round that is under way, or begin one if it is due. It rests while not all active runs are known."""
    policy = services.policy()
    if not policy.retention:
        return
    held, now = services.retained.read(), services.clock.now()
    known = held.document
    if known is None or known.is_due(now):
        known = Round(began_at=now)
    elif known.is_over:
        return
    active, has_more = services.ledger.active()
    if has_more:
        return
    cleaning = _Cleaning(services, policy.retention, active)
    ended = None
    try:
        ended = cleaning.continue_round(known, held)
    except GenerationMoved:
        return  # another tick is at it
    except TrainmasterError as error:
        yield FlowResult(message=f"the policy's retention stopped here: {error}", severity="WARNING")
    for damaged in cleaning.damaged:
        yield FlowResult(message=f"the policy's retention passes over it: {damaged}", severity="WARNING")
    if ended is not None and ended.removed:
        yield FlowResult(message=f"the policy's retention removed parts of {ended.removed} runs")


def ask_for_round(services: Services) -> None:
    """The next tick begins a round, or does so when the one under way has ended. Safe to repeat."""
    held, now = services.retained.read(), services.clock.now()
    known = held.document or Round(began_at=now, ended_at=now)
    services.retained.replace(held, replace(known, asked_at=now))


class _Cleaning:
    """The part of one tick in a round."""

    def __init__(self, services: Services, retention: Retention, active: Sequence[Marker]) -> None:
        self._services, self._retention, self._active = services, retention, active
        self._until = services.clock.now() + CLEANS_FOR
        self.damaged = list[RecordDamaged]()
        """The records that cannot be read. Nothing of their runs is removed."""

    def _find(self, run_id: str, known: Round) -> Held | None:
        """The record; None without one, or if it is damaged.

        Raises:
            RecordDamaged: it is of a run that must stay, and what that started from must stay, too.
        """
        try:
            return self._services.ledger.find(run_id)
        except RecordDamaged as damaged:
            if isinstance(damaged, RecordUnsupported) or run_id in known.kept:
                raise
            self.damaged.append(damaged)
            return None

    def continue_round(self, known: Round, held: HeldRound) -> Round | None:
        """The round if it has ended now; None if the next tick continues it."""
        services = self._services
        # In each tick, and after the markers were listed: a run that was still marked before may be champion now.
        known.keep(services.retained.reigns(), REIGNED)
        self._keep_for_rules(known)
        self._keep_for_new_runs(known)
        while True:
            if not all(self._remove(run_id, parts, known) for run_id, parts in known.pending.items()):
                return None
            if known.ended_at is not None:
                known = replace(known, pending={})
                services.retained.replace(held, known)
                return known
            if services.clock.now() >= self._until:
                return None
            known = self._decide_next(known)
            held = services.retained.replace(held, known)

    def _keep_for_rules(self, known: Round) -> None:
        """Keep what the next run of a rule may start from."""
        book = self._services.rule_book
        for rule in book.read().document.rules:
            template = book.template(rule.template.sha256) if rule.template else None
            known.keep(runs_in(rule.document, (template or b"").decode(errors="replace")), OF_RULE)

    def _keep_for_new_runs(self, known: Round) -> None:
        """Keep what runs started from that are newer than the round, or that its rows may not have shown."""
        services, since = self._services, known.began_at - NEW_WITHIN
        rows = (row for _, row in services.retained.rows("", NEW_MAX) if row is not None)
        new = {row.run_id for row in takewhile(lambda row: row.created_at >= since, rows)}
        new |= {marker.run_id for marker in self._active if marker.created_at >= since}
        for run_id in sorted(new):
            if (held := services.ledger.find(run_id)) is not None:
                known.keep(mentioned_runs(held.record), f"{run_id} started from it")

    def _decide_next(self, known: Round) -> Round:
        services, active = self._services, {marker.run_id for marker in self._active}
        rows = list(services.retained.rows(known.place, DECIDED_AT_ONCE))
        pending, place = dict[str, tuple[Part, ...]](), known.place
        for name, row in rows:
            held = self._find(row.run_id, known) if row is not None else None
            if row is not None and held is not None:
                decision = decide(
                    known,
                    row,
                    held.record,
                    self._retention,
                    active=active,
                    bucket=services.buckets.models,
                    now=services.clock.now(),
                )
                if decision.gone:
                    pending[row.run_id] = decision.gone
            place = name
            if services.clock.now() >= self._until:
                break
        is_last = len(rows) < DECIDED_AT_ONCE and (not rows or place == rows[-1][0])
        ended_at = services.clock.now() if is_last else None
        removed = known.removed + len(pending)
        return replace(known, place=place, pending=pending, ended_at=ended_at, removed=removed)

    def _remove(self, run_id: str, parts: tuple[Part, ...], known: Round) -> bool:
        """Whether all of it is gone; the next tick continues otherwise."""
        services, now = self._services, self._services.clock.now()
        held, attempt = self._find(run_id, known), services.attempt
        cleaned = (held.record.cleaned or {}) if held is not None else {}
        is_begun = not cleaned.keys().isdisjoint(parts)
        if held is None or Part.RUNS in cleaned or (run_id in known.kept and not is_begun):
            return True
        held = services.ledger.update(held, lambda record: with_mark(record, parts, now, attempt))
        for prefix in prefixes_of(held.record, parts, services.buckets.models):
            for name in services.outputs.below(prefix):
                if services.clock.now() >= self._until:
                    return False
                services.outputs.remove(name)
        if Part.RUNS in parts:
            for name in services.retained.objects_beside(held.record):
                services.retained.remove(name)
            services.ledger.replace(held, tombstone(held.record, now, attempt))
        return True
