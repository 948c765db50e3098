"""The data of a firing: before it is recorded, what it takes is looked at, and listed in a manifest if the request names it.

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
from trainmaster.orchestrator.core.retraining.condition import ConditionKind
from trainmaster.orchestrator.core.retraining.decision import Decision, Fire, Hold, NothingDue
from trainmaster.orchestrator.core.retraining.rule import Rule, manifest_object
from trainmaster.orchestrator.core.retraining.state import HeldBack, RuleState
from trainmaster.orchestrator.core.retraining.waiting import (
    CHUNK_MAX,
    DataBatch,
    batch_from,
    count_arrivals,
    folders_without,
    in_folder,
    is_watched,
    total_of,
    without_gone,
)
from trainmaster.orchestrator.flows.services import FlowResult, Services

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
        if not self.rule.keeps_objects or not is_watched(self.rule, batches):
            return count_arrivals(self.state, self.rule, batches).state
        counted = count_arrivals(self.state, self.rule, batches, self.objects)
        self._objects = counted.objects
        return counted.state

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
        for chunk in (self.objects[start : start + CHUNK_MAX] for start in starts):
            if chunk not in self._chunks:
                name = self.services.rule_data.write_chunk(self.rule.rule_id, version, chunk)
                self._chunks[chunk] = name
        return tuple(self._chunks[self.objects[start : start + CHUNK_MAX]] for start in starts)


DecideOn = Callable[[RuleState, DataBatch | None], Decision]


def decide_on_data(waiting: Waiting, state: RuleState, decide: DecideOn, log: list[FlowResult]) -> Decision:
    """The decision on what still exists of the data that a firing would take.

    `decide` gets None for the batch until it has been looked at. If it fires, the manifest is written.
    """
    decision, counted = decide(state, None), state
    for _ in range(LOOKS_MAX):
        if not isinstance(decision, Fire) or not state.waiting:
            break
        looked = _look(waiting, state, decision, log)
        state, folder, decision = looked.state, decision.folder, decide(looked.state, looked.batch)
        if isinstance(decision, Fire) and decision.folder == folder:
            looked.take(waiting)
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


@dataclass(frozen=True, kw_only=True)
class _Looked:
    """The state without what is gone, and what is left for the firing; `taken` as it is kept, `manifest` as a file."""

    state: RuleState
    batch: DataBatch | None = None
    taken: Sequence[ArrivedObject] = ()
    manifest: tuple[str, bytes] | None = None

    def take(self, waiting: Waiting) -> None:
        if self.manifest is not None:
            waiting.services.rule_data.write_once(*self.manifest)
            waiting.remove(self.taken)


def _look(waiting: Waiting, state: RuleState, fire: Fire, log: list[FlowResult]) -> _Looked:
    keeps = waiting.rule.keeps_objects
    folder, objects = fire.folder, state.newest
    if keeps:
        objects = [one for one in waiting.objects if folder is None or in_folder(state, one, folder)]
        objects = objects[:CHUNK_MAX]
    try:
        if keeps:
            still = waiting.services.watched.still(objects)
        else:
            state = _without_empty_folders(waiting, state)
            objects, still = _newest(waiting.services, state)
    except AccessDenied as error:
        still = {one.identity: one for one in objects}
        message = f"{waiting.rule.rule_id}: {error}; deleted objects are not told from others"
        log.append(FlowResult(message=message, severity="NOTICE"))
    gone = [one for one in objects if one.identity not in still]
    state = without_gone(state, waiting.rule, gone, still)
    if not keeps:
        return _Looked(state=state)
    waiting.remove(gone)
    taken = [one for one in objects if one.identity in still]
    if not taken:
        return _Looked(state=state if waiting.objects else replace(state, waiting=()))
    name, content = _manifest(waiting, fire.firing.run_id, list(still.values()))
    left = folders_without(state, waiting.rule, taken) if len(taken) < len(waiting.objects) else ()
    uri = object_uri(waiting.services.buckets.ledger, name)
    return _Looked(
        state=state, batch=batch_from(list(still.values()), left, uri), taken=taken, manifest=(name, content)
    )


def _without_empty_folders(waiting: Waiting, state: RuleState) -> RuleState:
    """The state without the folders that hold nothing any more, if the request names folders."""
    is_whole = len(state.newest) == total_of(state.waiting).count
    if is_whole or "data.dirs" not in {placeholder.name for placeholder in waiting.rule.placeholders}:
        return state
    dirs = {folder.dir_uri for folder in state.waiting}
    empty = {dir_uri for dir_uri in dirs if not waiting.services.watched.has_any(dir_uri)}
    return replace(state, waiting=tuple(one for one in state.waiting if one.dir_uri not in empty))


def _newest(services: Services, state: RuleState) -> tuple[Sequence[ArrivedObject], dict[str, ArrivedObject]]:
    """The newest objects that were looked at, and those that still exist: all if no others wait, else up to the first."""
    is_whole = len(state.newest) == total_of(state.waiting).count
    still = dict[str, ArrivedObject]()
    for number, arrived in enumerate(state.newest, start=1):
        now = services.watched.find(arrived)
        if now is not None:
            still[arrived.identity] = now
            if not is_whole:
                return state.newest[:number], still
    return state.newest, still


def _manifest(waiting: Waiting, run_id: str, objects: Sequence[ArrivedObject]) -> tuple[str, bytes]:
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
    return manifest_object(run_id, digest, waiting.rule.team), content
