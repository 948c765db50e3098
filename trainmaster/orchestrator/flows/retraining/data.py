"""The data of a firing: checked to exist before the firing is recorded, and listed in a manifest if the request names it.

The order of writes, and what a crash between two of them leaves:

    chunk      the objects that wait, for a rule that names them: a crash leaves one that no state names
    manifest   what a firing takes, by the hash of its content: a crash leaves one that no run names
    state      names both
    deletion   of the chunks before: a crash leaves them
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from trainmaster.orchestrator.core.documents.codec import encoded_time, json_line
from trainmaster.orchestrator.core.errors import AccessDenied
from trainmaster.orchestrator.core.names import HASH_CHARS, object_uri
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, Batch
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.decision import Decision, Fire, Hold, NothingDue
from trainmaster.orchestrator.core.retraining.rule import Rule, manifest_object
from trainmaster.orchestrator.core.retraining.state import HeldBack, RuleState
from trainmaster.orchestrator.core.retraining.waiting import (
    DataBatch,
    count_arrivals,
    folders_without,
    knows_all,
    objects_in,
    total_of,
    without_gone,
)
from trainmaster.orchestrator.flows.services import FlowResult, Services

CHUNK_MAX = 10_000
"""Objects that are kept by name in one object of the ledger; and of one manifest."""
LOOKS_MAX = 5
"""How many folders a turn looks at whose data is gone; the next turn looks at others."""


@dataclass(kw_only=True)
class Waiting:
    """The objects that wait for a rule's firings, by name, during one turn; those of a rule that does not keep them are unknown."""

    services: Services
    rule: Rule
    state: RuleState
    _chunks: dict[tuple[ArrivedObject, ...], str] = field(default_factory=dict)
    _objects: tuple[ArrivedObject, ...] | None = None

    @property
    def objects(self) -> tuple[ArrivedObject, ...]:
        """All of them, oldest first. They are read when they are first needed."""
        if self._objects is None:
            names, newest = self.state.chunks, self.state.newest[::-1]
            self._chunks = {self.services.rule_data.read_chunk(name): name for name in names}
            # A rule that did not keep them before knows its newest ones.
            self._objects = tuple(one for chunk in self._chunks for one in chunk) if names else newest
        return self._objects

    def count(self, batches: Sequence[Batch]) -> RuleState:
        """The state with the batches' arrivals counted."""
        kept = (lambda: self.objects) if self.rule.keeps_objects else None
        counted, objects = count_arrivals(self.state, self.rule, batches, kept)
        if kept is not None and counted is not self.state:
            self._objects = objects
        return counted

    def remove(self, gone: Sequence[ArrivedObject]) -> None:
        identities = {one.identity for one in gone}
        self._objects = tuple(one for one in self.objects if one.identity not in identities)

    def save(self, version: int) -> tuple[str, ...]:
        """Write what is not written yet, for the state that replaces this version; the names of all chunks."""
        if not self.rule.keeps_objects:
            return ()
        if self._objects is None and self.state.chunks:
            return self.state.chunks
        starts = range(0, len(self.objects), CHUNK_MAX)
        chunks = [self.objects[start : start + CHUNK_MAX] for start in starts]
        for chunk in chunks:
            if chunk not in self._chunks:
                self._chunks[chunk] = self.services.rule_data.write_chunk(self.rule.rule_id, version, chunk)
        return tuple(self._chunks[chunk] for chunk in chunks)


DecideOn = Callable[[RuleState, DataBatch | None], Decision]


def decide_on_data(waiting: Waiting, state: RuleState, decide: DecideOn, log: list[FlowResult]) -> Decision:
    """The decision on what still exists of the data that a firing would take.

    `decide` gets None for the batch until its objects are checked. If it fires, the manifest is written.
    """
    decision, counted = decide(state, None), state
    for _ in range(LOOKS_MAX):
        if not isinstance(decision, Fire) or not state.waiting:
            break
        folder, (state, batch, take) = decision.folder, _look(waiting, state, decision, log)
        decision = decide(state, batch)
        if isinstance(decision, Fire) and decision.folder == folder:
            take()
            break
        if isinstance(decision, Fire):
            decision = decide(state, None)  # another folder's turn
    else:
        decision = NothingDue()
    if not isinstance(decision, NothingDue) or state == counted:
        return decision
    gone = total_of(counted.waiting).count - total_of(state.waiting).count
    reason = f"{gone} of the objects that had arrived are deleted or replaced; too few are left"
    held = HeldBack(condition=ConditionKind.NEW_DATA, reason=reason, at=waiting.services.clock.now())
    return Hold(state=replace(state, held=held), reason=reason)


def _look(
    waiting: Waiting, state: RuleState, fire: Fire, log: list[FlowResult]
) -> tuple[RuleState, DataBatch | None, Callable[[], None]]:
    """The state without what is gone, what is left for the firing, and how to take it."""
    rule, rule_data = waiting.rule, waiting.services.rule_data
    if not rule.keeps_objects:
        return _look_at_newest(waiting, state, log), None, lambda: None
    objects = objects_in(state, waiting.objects, fire.folder)[:CHUNK_MAX]
    still = _still(waiting, objects, log)
    gone = [one for one in objects if one.identity not in still]
    taken = [one for one in objects if one.identity in still]
    state = without_gone(state, rule, gone, still)
    waiting.remove(gone)
    if not taken:
        return state if waiting.objects else replace(state, waiting=()), None, lambda: None
    live = sorted((still[one.identity] for one in taken), key=lambda one: one.created_at)
    name, content = _manifest(rule, fire.firing.run_id, live)
    batch = DataBatch(
        count=len(live),
        size_bytes=sum(one.size_bytes for one in live),
        newest=live[-1],
        dirs=tuple(dict.fromkeys(one.dir_uri for one in live)),
        left=folders_without(state, rule, taken) if len(taken) < len(waiting.objects) else (),
        manifest_uri=object_uri(waiting.services.buckets.ledger, name),
    )

    def take() -> None:
        rule_data.write_manifest(name, content)
        waiting.remove(taken)

    return state, batch, take


def _look_at_newest(waiting: Waiting, state: RuleState, log: list[FlowResult]) -> RuleState:
    """The state without what is gone of the newest objects: of all, if no others wait, else up to the first that exists."""
    still, looked = dict[str, ArrivedObject](), 0
    while looked < len(state.newest) and not still:
        more = len(state.newest) if knows_all(state) else 1
        still |= _still(waiting, state.newest[looked : looked + more], log)
        looked += more
    names_dirs = any(one.name == "data.dirs" for one in waiting.rule.placeholders)
    if names_dirs and not knows_all(state):
        dirs = {folder.dir_uri for folder in state.waiting}
        full = {one for one in dirs if waiting.services.watched.has_any(one)}
        state = replace(state, waiting=tuple(one for one in state.waiting if one.dir_uri in full))
    gone = [one for one in state.newest[:looked] if one.identity not in still]
    return without_gone(state, waiting.rule, gone, still)


def _still(
    waiting: Waiting, objects: Sequence[ArrivedObject], log: list[FlowResult]
) -> dict[str, ArrivedObject]:
    """Those that still exist, as they are now, by the identity with which they arrived.

    All, with a line in the log, if this deployment may not read one of their buckets.
    """
    try:
        return waiting.services.watched.still(objects)
    except AccessDenied as error:
        message = f"{waiting.rule.rule_id}: {error}; deleted objects count as if they existed"
        log[:] = [FlowResult(message=message, severity="NOTICE")]
        return {one.identity: one for one in objects}


def _manifest(rule: Rule, run_id: str, objects: Sequence[ArrivedObject]) -> tuple[str, bytes]:
    """The name and content of the list of the firing's objects, oldest first: one JSON object a line."""
    lines = (
        {
            "uri": one.uri,
            "generation": one.generation,
            "size": one.size_bytes,
            **({"crc32c": one.crc32c} if one.crc32c else {}),
            "created_at": encoded_time(one.created_at),
        }
        for one in objects
    )
    content = "".join(f"{json_line(line)}\n" for line in lines).encode()
    digest = hashlib.sha256(content).hexdigest()[:HASH_CHARS]
    return manifest_object(run_id, digest, rule.team), content
