"""The objects that wait for a rule's firing: each is counted once, by its content, and a firing takes them.

An object with a checksum is known by it, its size and its base name: written again or moved, it is the same object. Of
two objects with the same content, which may be one that was moved, both count while all that wait are known by name:
before the firing, the one that no longer exists is left out. Otherwise, the later one takes the earlier one's place.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, Batch
from trainmaster.orchestrator.core.retraining.condition import NewData
from trainmaster.orchestrator.core.retraining.filling import VALUE_MAX_CHARS
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
CHUNK_MAX = 10_000
"""Objects that are kept by name in one object of the ledger; and of one manifest."""
FOLDERS_MAX = 500
FOLDERS_MAX_CHARS = 32_768
"""Of a rule with `each: folder`. Other rules need no more folders than `data.dirs` can name."""

_Key = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A state with arrivals counted, and all objects that are known by name, oldest first."""

    state: RuleState
    objects: tuple[ArrivedObject, ...]


@dataclass(frozen=True, kw_only=True)
class DataBatch:
    """What a firing takes.

    Attributes:
        newest: the newest object; None if there is none, or none is known.
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


def counted_by(state: RuleState, condition: NewData) -> MatchCount:
    """What the condition has counted since the last firing."""
    return total_of(_folders_of(state, condition))


def folders_by(state: RuleState, condition: NewData) -> list[WaitingFolder]:
    """The same by folder, in order of the first arrival."""
    by_dir = defaultdict[str, list[WaitingFolder]](list)
    for folder in _folders_of(state, condition):
        by_dir[folder.dir_uri].append(folder)
    return [_merged(same[0], *same[1:]) for same in by_dir.values()]


def _folders_of(state: RuleState, condition: NewData) -> Iterator[WaitingFolder]:
    place = state.watched.index(condition.watched) if condition.watched in state.watched else None
    return (folder for folder in state.waiting if place in folder.takers)


def is_watched(rule: Rule, batches: Iterable[Batch]) -> bool:
    """Whether any of the arrivals may count."""
    arrivals = (arrived for batch in batches for arrived in batch.arrivals)
    return any(condition.takes(arrived.uri) for arrived in arrivals for condition in rule.new_data)


def with_arrivals(state: RuleState, rule: Rule, batches: Sequence[Batch]) -> RuleState:
    """The state with the batches' matching objects counted, each once, in any order of arrival.

    The last KEPT_IDENTITIES objects and KEPT_BATCHES batches are remembered; a batch is known by its name. Returns the
    same state if nothing matched.
    """
    return count_arrivals(state, rule, batches).state


def count_arrivals(
    state: RuleState, rule: Rule, batches: Sequence[Batch], kept: Sequence[ArrivedObject] | None = None
) -> Counted:
    """As `with_arrivals`. `kept`: all objects that wait, if the rule keeps them by name."""
    known = unpacked(state.batches)
    fresh = {digest: batch for batch in batches if (digest := short_hash(batch.name)) not in known}
    counting = _Counting.of(state, rule, state.newest if kept is None else kept)
    named = NEWEST_MAX - total_of(state.waiting).count
    arrivals = {arrived.identity: arrived for batch in fresh.values() for arrived in batch.arrivals}
    for arrived in sorted(filter(counting.takers, arrivals.values()), key=_age):
        counting.take(arrived, is_whole=kept is not None or len(counting.counted) < named)
    objects = tuple(sorted(counting.objects, key=_age))
    if not counting.has_changed:
        return Counted(state=state, objects=objects)
    waiting = _with_folders(state.waiting, counting.folders(counting.counted), has_each=counting.by_place)
    counted = replace(
        state,
        waiting=folders_without(replace(state, waiting=waiting), rule, counting.moved),
        newest=tuple(reversed(objects[-NEWEST_MAX:])),
        batches=with_latest(state.batches, fresh, KEPT_BATCHES),
        identities=with_latest(state.identities, counting.new, KEPT_IDENTITIES),
    )
    return Counted(state=counted, objects=objects)


def _age(arrived: ArrivedObject) -> tuple[object, ...]:
    return arrived.created_at, arrived.uri, arrived.generation


@dataclass(kw_only=True)
class _Counting:
    """The objects known by name, by digest and URI, and those that are new.

    `by_place`: an object elsewhere is another one, because a firing takes the objects of a folder.
    """

    watching: list[tuple[int, NewData]]
    by_place: bool
    seen: dict[str, None]
    places: defaultdict[str, dict[str, ArrivedObject]] = field(default_factory=lambda: defaultdict(dict))
    new: dict[str, None] = field(default_factory=dict)
    counted: list[ArrivedObject] = field(default_factory=list)
    moved: list[ArrivedObject] = field(default_factory=list)
    has_changed: bool = False

    @classmethod
    def of(cls, state: RuleState, rule: Rule, objects: Iterable[ArrivedObject]) -> "_Counting":
        places = {text: place for place, text in enumerate(state.watched)}
        counting = cls(
            watching=[(places[one.watched], one) for one in rule.new_data if one.watched in places],
            by_place=any(condition.each for condition in rule.new_data),
            seen=unpacked(state.identities),
        )
        for found in objects:
            counting.places[counting.digest(found)][found.uri] = found
        return counting

    @property
    def objects(self) -> Iterator[ArrivedObject]:
        return (found for places in self.places.values() for found in places.values())

    def takers(self, arrived: ArrivedObject) -> tuple[int, ...]:
        if not arrived.is_data:
            return ()
        return tuple(sorted({place for place, condition in self.watching if condition.takes(arrived.uri)}))

    def digest(self, arrived: ArrivedObject) -> str:
        if not arrived.crc32c:
            return short_hash(arrived.identity)
        name = arrived.uri if self.by_place else f"{self.takers(arrived)} {arrived.name.rpartition('/')[2]}"
        return short_hash(f"{name} {arrived.size_bytes} {arrived.crc32c}")

    def take(self, arrived: ArrivedObject, *, is_whole: bool) -> None:
        """Count the object, unless it is known, here or elsewhere."""
        digest = self.digest(arrived)
        is_new, here = digest not in self.seen, self.places[digest]
        same, twin = here.get(arrived.uri), next(iter(here.values()), None)
        if is_new:
            self.seen[digest] = self.new[digest] = None
            self.counted.append(arrived)
        elif same is None and twin is not None and is_whole:
            self.counted.append(arrived)  # `without_gone` finds out which of them was moved
        elif same is not None and same.generation < arrived.generation:
            pass  # the same content was written again
        elif same is None and twin is not None and _age(twin) < _age(arrived):
            self.moved.append(here.pop(twin.uri))
            self.counted.append(arrived)
        else:
            return  # a firing had it
        here[arrived.uri] = arrived
        self.has_changed = True

    def folders(self, objects: Iterable[ArrivedObject]) -> dict[_Key, WaitingFolder]:
        found: dict[_Key, list[ArrivedObject]] = defaultdict(list)
        for one in objects:
            found[one.dir_uri, self.takers(one)].append(one)
        return {
            (dir_uri, takers): WaitingFolder(
                dir_uri=dir_uri,
                takers=takers,
                count=len(inside),
                size_bytes=sum(one.size_bytes for one in inside),
                first_at=min(one.created_at for one in inside),
                newest_at=max(one.created_at for one in inside),
            )
            for (dir_uri, takers), inside in found.items()
        }


def _merged(first: WaitingFolder, *others: WaitingFolder) -> WaitingFolder:
    """Both as the first one, with the takers of each."""
    every = (first, *others)
    return replace(
        first,
        **vars(total_of(every)),
        takers=tuple(sorted({place for folder in every for place in folder.takers})),
        others=any(folder.others or folder.dir_uri != first.dir_uri for folder in every),
    )


def _first_arrival(folder: WaitingFolder) -> tuple[object, ...]:
    return folder.first_at, folder.dir_uri, folder.takers


def _with_folders(
    waiting: Sequence[WaitingFolder], more: dict[_Key, WaitingFolder], *, has_each: bool
) -> tuple[WaitingFolder, ...]:
    """All of them, in order of the first arrival; what there is no room for joins the last one."""
    folders = {(folder.dir_uri, folder.takers): folder for folder in waiting}
    chars = sum(len(dir_uri) + 1 for dir_uri, _ in folders)
    most, most_chars = (FOLDERS_MAX, FOLDERS_MAX_CHARS) if has_each else (VALUE_MAX_CHARS, VALUE_MAX_CHARS)
    for key, folder in sorted(more.items(), key=lambda item: _first_arrival(item[1])):
        if key in folders:
            folders[key] = _merged(folders[key], folder)
        elif len(folders) < most and chars <= most_chars:
            folders[key] = folder
            chars += len(folder.dir_uri) + 1
        else:
            last = folders.pop(max(folders, key=lambda one: _first_arrival(folders[one])))
            joined = _merged(last, folder)
            folders[joined.dir_uri, joined.takers] = joined
    return tuple(sorted(folders.values(), key=_first_arrival))


def batch_of(state: RuleState, folder: str | None = None) -> DataBatch:
    """What a firing takes of a state that only counts objects: everything, or what is in the folder."""
    taken = [one for one in state.waiting if folder in (None, one.dir_uri)]
    counted = total_of(taken)
    return DataBatch(
        count=counted.count,
        size_bytes=counted.size_bytes,
        newest=next((found for found in state.newest if folder in (None, found.dir_uri)), None),
        dirs=tuple(dict.fromkeys(one.dir_uri for one in taken)),
        left=tuple(one for one in state.waiting if one not in taken),
    )


def batch_from(
    objects: Sequence[ArrivedObject], left: tuple[WaitingFolder, ...], manifest_uri: str
) -> DataBatch:
    """The batch of these objects, of which there is at least one."""
    oldest_first = sorted(objects, key=_age)
    return DataBatch(
        count=len(objects),
        size_bytes=sum(found.size_bytes for found in objects),
        newest=oldest_first[-1],
        dirs=tuple(dict.fromkeys(found.dir_uri for found in oldest_first)),
        left=left,
        manifest_uri=manifest_uri,
    )


def in_folder(state: RuleState, found: ArrivedObject, folder: str) -> bool:
    """Whether a firing for the folder takes the object. That of the last folder takes those that joined it, too."""
    if found.dir_uri == folder:
        return True
    names = {one.dir_uri for one in state.waiting}
    return found.dir_uri not in names and any(one.others and one.dir_uri == folder for one in state.waiting)


def folders_without(
    state: RuleState, rule: Rule, taken: Iterable[ArrivedObject]
) -> tuple[WaitingFolder, ...]:
    """What waits without these objects."""
    folders = {(folder.dir_uri, folder.takers): folder for folder in state.waiting}
    joined = next((key for key, folder in folders.items() if folder.others), None)
    for key, gone in _Counting.of(state, rule, ()).folders(taken).items():
        place = key if key in folders else joined
        if place is not None:
            of = folders[place]
            count, size_bytes = of.count - gone.count, of.size_bytes - gone.size_bytes
            folders[place] = replace(of, count=max(count, 0), size_bytes=max(size_bytes, 0))
    return tuple(folder for folder in folders.values() if folder.count)


def without_gone(
    state: RuleState, rule: Rule, gone: Sequence[ArrivedObject], still: Mapping[str, ArrivedObject]
) -> RuleState:
    """The state without objects that no longer exist; should one come back, it counts again.

    `still`: others as they are now, by the identity with which they arrived.
    """
    counting, identities = _Counting.of(state, rule, ()), {found.identity for found in gone}
    newest = (still.get(one.identity, one) for one in state.newest if one.identity not in identities)
    state = replace(state, newest=tuple(newest))
    if not gone:
        return state
    others = {counting.digest(found) for found in (*state.newest, *still.values())}
    forgotten = {counting.digest(found) for found in gone} - others
    return replace(
        state,
        waiting=folders_without(state, rule, gone),
        identities="".join(digest for digest in unpacked(state.identities) if digest not in forgotten),
    )
