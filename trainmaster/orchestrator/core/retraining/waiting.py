"""The objects that wait for a rule's firing: each is counted once, by its content, and a firing takes them.

An object with a checksum is known by it, its size and its name: written again, it is the same object. In a folder whose
name says that it was put away, such as `done/`, it is known by its file name alone, once a firing had it. Of an object
that was moved while it waits, both places count, and before the firing the one that no longer exists is left out.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmaster.orchestrator.core.names import is_put_away
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, Batch
from trainmaster.orchestrator.core.retraining.filling import VALUE_MAX_CHARS
from trainmaster.orchestrator.core.retraining.new_data import NewData
from trainmaster.orchestrator.core.retraining.rule import Rule
from trainmaster.orchestrator.core.retraining.state import (
    KEPT_BATCHES,
    KEPT_IDENTITIES,
    MatchCount,
    RuleState,
    WaitingFolder,
    short_hash,
    unpacked,
    with_latest,
)

NEWEST_MAX = 10
FOLDERS_MAX = 500
FOLDERS_MAX_CHARS = 32_768
"""Of a rule with `each: folder`. Other rules need no more folders than `data.dirs` can name."""


@dataclass(frozen=True, kw_only=True)
class DataBatch:
    """What a firing takes.

    Attributes:
        newest: the newest object; None if the firing takes no object, or knows none by name.
        dirs: the folders, in order of their first arrival.
        left: what waits after it.
        manifest_uri: where all of them are listed.
    """

    count: int
    size_bytes: int
    newest: ArrivedObject | None
    dirs: tuple[str, ...]
    left: tuple[WaitingFolder, ...] = ()
    manifest_uri: str | None = None


def total_of(counts: Iterable[MatchCount]) -> MatchCount:
    counts = list(counts)
    return MatchCount(
        count=sum(each.count for each in counts),
        size_bytes=sum(each.size_bytes for each in counts),
        first_at=min((each.first_at for each in counts if each.first_at), default=None),
        newest_at=max((each.newest_at for each in counts if each.newest_at), default=None),
    )


def knows_all(state: RuleState) -> bool:
    """Whether `newest` has all objects that wait."""
    return len(state.newest) == total_of(state.waiting).count


def folders_by(state: RuleState, condition: NewData) -> list[WaitingFolder]:
    """What the condition has counted since the last firing, by folder in order of the first arrival."""
    place = state.watched.index(condition.watched) if condition.watched in state.watched else None
    by_dir = defaultdict[str, list[WaitingFolder]](list)
    for folder in state.waiting:
        if place in folder.takers:
            by_dir[folder.dir_uri].append(folder)
    return [replace(same[0], **vars(total_of(same))) for same in by_dir.values()]


def counted_by(state: RuleState, condition: NewData) -> MatchCount:
    """What the condition has counted since the last firing."""
    return total_of(folders_by(state, condition))


def with_arrivals(state: RuleState, rule: Rule, batches: Sequence[Batch]) -> RuleState:
    """The state with the batches' matching objects counted, each once, in any order of arrival.

    The last KEPT_IDENTITIES hashes of objects and KEPT_BATCHES batches are remembered; a batch is known by its name. Returns the
    same state if nothing matched.
    """
    return count_arrivals(state, rule, batches)[0]


def count_arrivals(
    state: RuleState,
    rule: Rule,
    batches: Sequence[Batch],
    kept: Callable[[], Sequence[ArrivedObject]] | None = None,
) -> tuple[RuleState, tuple[ArrivedObject, ...]]:
    """As `with_arrivals`, and all objects that are known by name, oldest first; none if nothing matched.

    `kept` reads all objects that wait, if the rule keeps them by name.
    """
    known = unpacked(state.batches)
    fresh = {digest: batch for batch in batches if (digest := short_hash(batch.name)) not in known}
    arrivals = (arrived for batch in fresh.values() for arrived in batch.arrivals)
    tally, unnamed = _Tally(state, rule), total_of(state.waiting).count - len(state.newest)
    matched = [(arrived, takers) for arrived in arrivals if (takers := tally.takers(arrived))]
    if not matched:
        return state, ()
    tally.know(state.newest if kept is None else kept())
    for arrived, takers in sorted(matched, key=lambda one: _age(one[0])):
        knows_names = kept is not None or (unnamed == 0 and len(tally.places) < NEWEST_MAX)
        tally.take(arrived, takers, knows_names=knows_names)
        if kept is None and len(tally.places) > KEPT_IDENTITIES:
            del tally.places[next(iter(tally.places))]  # the oldest
    objects = tuple(sorted(tally.places.values(), key=_age))
    if not tally.has_changed:
        return state, ()
    counted = replace(
        state,
        waiting=tally.waiting,
        newest=objects[-NEWEST_MAX:][::-1],
        batches=with_latest(state.batches, fresh, KEPT_BATCHES),
        identities=with_latest(state.identities, tally.new, KEPT_IDENTITIES),
    )
    return counted, objects


def _age(arrived: ArrivedObject) -> tuple[object, ...]:
    return arrived.created_at, arrived.uri, arrived.generation


def _first_arrival(folder: WaitingFolder) -> tuple[object, ...]:
    return folder.first_at, folder.dir_uri, folder.takers


def digests_of(arrived: ArrivedObject) -> tuple[str, ...]:
    """What identifies the object in its place and, if its checksum is known, in any."""
    if not arrived.crc32c:
        return (short_hash(arrived.identity),)
    content = f"{arrived.size_bytes} {arrived.crc32c}"
    return tuple(short_hash(f"{name} {content}") for name in (arrived.uri, arrived.name.rpartition("/")[2]))


class _Tally:
    """The objects that wait: counted by folder, and those that are known by name, by digest."""

    def __init__(self, state: RuleState, rule: Rule) -> None:
        places = {text: place for place, text in enumerate(state.watched)}
        self._watching = [(places[one.watched], one) for one in rule.new_data if one.watched in places]
        self._by_place = any(condition.each for condition in rule.new_data)
        self._rows = dict[tuple[str, tuple[int, ...]], WaitingFolder]()
        for row in state.waiting:
            key = row.dir_uri, row.takers
            # A condition that is gone may leave two rows that only it distinguished.
            both = [*filter(None, (self._rows.get(key),)), row]
            others = any(one.others for one in both)
            self._rows[key] = replace(row, **vars(total_of(both)), others=others)
        self._seen, self._contents = set(unpacked(state.identities)), set[str]()
        self.new = list[str]()
        self.has_changed = False
        self.places = dict[str, ArrivedObject]()

    def know(self, objects: Iterable[ArrivedObject]) -> None:
        """Take these as counted."""
        for found in objects:
            digests = digests_of(found)
            self.places[digests[0]] = found
            self._contents.update(digests[1:])

    @property
    def waiting(self) -> tuple[WaitingFolder, ...]:
        return tuple(sorted((row for row in self._rows.values() if row.count > 0), key=_first_arrival))

    def takers(self, arrived: ArrivedObject) -> tuple[int, ...]:
        """The conditions that take it; none if it is temporary, a marker or empty."""
        uri = arrived.uri
        found = tuple(place for place, condition in self._watching if condition.takes(uri))
        return tuple(sorted(set(found))) if found and arrived.is_data else ()

    def take(self, arrived: ArrivedObject, takers: tuple[int, ...], *, knows_names: bool) -> None:
        """Count the object, unless it is known; `knows_names`: all that wait are in `places`."""
        digests = digests_of(arrived)
        same = self.places.get(digests[0])
        if digests[0] in self._seen:
            if same is None or arrived.generation <= same.generation:
                return  # a firing had it, or it waits as it is
        elif knows_names and is_put_away(arrived.name) and self._was_taken(digests):
            return  # a firing had it where it was before
        else:
            self.new += [digest for digest in digests if digest not in self._seen]
            self._seen.update(digests)
            self.add(arrived, takers)
        self.know([arrived])
        self.has_changed = True

    def _was_taken(self, digests: tuple[str, ...]) -> bool:
        """Whether an object with this content is known and none waits; never without a checksum."""
        return any(one in self._seen and one not in self._contents for one in digests[1:])

    def add(self, arrived: ArrivedObject, takers: tuple[int, ...], number: int = 1) -> None:
        """Count the object once more, or once less."""
        key, at = (arrived.dir_uri, takers), arrived.created_at
        row = self._rows.get(key) or self._room_for(*key, is_new=number > 0)
        self._rows[row.dir_uri, takers] = replace(
            row,
            count=row.count + number,
            size_bytes=row.size_bytes + number * arrived.size_bytes,
            first_at=min(row.first_at or at, at),
            newest_at=max(row.newest_at or at, at),
        )

    def _room_for(self, dir_uri: str, takers: tuple[int, ...], *, is_new: bool) -> WaitingFolder:
        """A new folder, or the last one with these takers if there is, or was, no room for its name."""
        most = (FOLDERS_MAX, FOLDERS_MAX_CHARS) if self._by_place else (VALUE_MAX_CHARS, VALUE_MAX_CHARS)
        chars = sum(len(one) + 1 for one, _ in self._rows)
        same = [row for row in self._rows.values() if row.takers == takers]
        joined = [row for row in same if row.others]
        if joined and not is_new:
            return joined[-1]
        if not same or (len(self._rows) < most[0] and chars <= most[1]):
            return WaitingFolder(dir_uri=dir_uri, takers=takers)
        return replace(max(same, key=_first_arrival), others=True)


def batch_of(state: RuleState, folder: str | None = None) -> DataBatch:
    """What a firing takes as far as the state knows: everything, or what is in the folder."""
    taken = [one for one in state.waiting if folder in (None, one.dir_uri)]
    counted = total_of(taken)
    return DataBatch(
        count=counted.count,
        size_bytes=counted.size_bytes,
        newest=next((found for found in state.newest if folder in (None, found.dir_uri)), None),
        dirs=tuple(dict.fromkeys(one.dir_uri for one in taken)),
        left=tuple(one for one in state.waiting if one not in taken),
    )


def objects_in(state: RuleState, objects: Sequence[ArrivedObject], folder: str | None) -> list[ArrivedObject]:
    """Those that a firing for the folder takes: for the last one, those too that joined it. None takes all."""
    elsewhere = {one.dir_uri for one in state.waiting if one.dir_uri != folder}
    joined = any(one.others and one.dir_uri == folder for one in state.waiting)
    taken = {found.dir_uri for found in objects if folder in (None, found.dir_uri)}
    taken |= {found.dir_uri for found in objects if joined and found.dir_uri not in elsewhere}
    return [found for found in objects if found.dir_uri in taken]


def folders_without(
    state: RuleState, rule: Rule, taken: Iterable[ArrivedObject]
) -> tuple[WaitingFolder, ...]:
    """What waits without these objects."""
    tally = _Tally(state, rule)
    for found in taken:
        tally.add(found, tally.takers(found), -1)
    return tally.waiting


def without_gone(
    state: RuleState, rule: Rule, gone: Sequence[ArrivedObject], still: Mapping[str, ArrivedObject]
) -> RuleState:
    """The state without objects that no longer exist; should one come back, it counts again.

    `still`: others as they are now, by the identity with which they arrived.
    """
    lost = {found.identity for found in gone}
    left = (still.get(one.identity, one) for one in state.newest if one.identity not in lost)
    newest = tuple(sorted(left, key=_age, reverse=True))
    digests = [
        {digest for one in objects for digest in digests_of(one)}
        for objects in (gone, (*newest, *still.values()))
    ]
    forgotten = digests[0] - digests[1]
    return replace(
        state,
        waiting=folders_without(state, rule, gone),
        newest=newest,
        identities="".join(each for each in unpacked(state.identities) if each not in forgotten),
    )
