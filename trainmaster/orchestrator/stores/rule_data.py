"""The objects that rules watch: those that wait for a firing by name, the manifests of firings, and what still exists."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice, takewhile
from os.path import commonprefix

from trainmaster.orchestrator.core.errors import AccessDenied, ObjectGone, ServiceFailed
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, encoded_batch, parse_batch
from trainmaster.orchestrator.core.retraining.rule import chunk_object
from trainmaster.orchestrator.core.sizes import MAX_CHUNK_BYTES
from trainmaster.orchestrator.ports.objects import Listed, Objects
from trainmaster.orchestrator.stores.store import NDJSON, Store

LISTED_MAX, PAGE = 50_000, 1000
"""Names that are listed to look for a batch. Each listing counts as a page at least."""


class RuleData(Store):
    """Objects that are written once and never changed."""

    def read_chunk(self, name: str) -> tuple[ArrivedObject, ...]:
        """The objects in it. One that is gone or damaged has none: then the state that names it is no longer the last."""
        stored = self._find_bounded(name, MAX_CHUNK_BYTES)
        with suppress(ValueError):
            return parse_batch(name, stored.content if stored is not None else b"").arrivals
        return ()

    def write_chunk(self, rule_id: str, version: int, objects: Sequence[ArrivedObject]) -> str:
        """Keep the objects for the state that replaces this version, and return the chunk's name.

        No two versions share a name, so that the chunks of an earlier one may be deleted at any time.
        """
        content = encoded_batch(objects)
        digest = hashlib.sha256(b"%d\n%b" % (version, content)).hexdigest()[:20]
        name = chunk_object(rule_id, digest)
        self._write_once(name, content, NDJSON)
        return name

    def write_manifest(self, name: str, content: bytes) -> None:
        """Write the manifest, whose name has the hash of its content. Safe to repeat."""
        self._write_once(name, content, NDJSON)

    def delete(self, names: Collection[str]) -> None:
        """Delete what no state names any more, if the service answers."""
        for name in names:
            with suppress(ServiceFailed):
                self.objects.delete(self.bucket, name)


class WatchedObjects:
    """The objects in the buckets that rules watch."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects

    def still(self, arrivals: Sequence[ArrivedObject]) -> dict[str, ArrivedObject]:
        """Those that still have their content, as they are now, by the identity with which they arrived.

        Beyond LISTED_MAX names, an object is not looked for, and counts as it was.

        Raises:
            AccessDenied: this deployment may not list one of the buckets.
        """
        by_folder = defaultdict[tuple[str, str], list[ArrivedObject]](list)
        for arrived in arrivals:
            by_folder[arrived.bucket, arrived.dir_uri].append(arrived)
        left, found = LISTED_MAX, dict[str, ArrivedObject]()
        for (bucket, _), inside in by_folder.items():
            names = [arrived.name for arrived in inside]
            listed = {entry.name: entry for entry in islice(self._listing(bucket, names), left)}
            listed_to = max(listed, default="") if len(listed) == left else max(names)
            for arrived in inside:
                now = _present_version(arrived, listed.get(arrived.name))
                if now is not None or arrived.name > listed_to:
                    found[arrived.identity] = now or arrived
            left = max(0, left - max(len(listed), PAGE))
        return found

    def _listing(self, bucket: str, names: Sequence[str]) -> Iterator[Listed]:
        """The objects from the first to the last of these names, and others between; none if there is no bucket."""
        prefix, last = commonprefix(names), max(names)  # noqa: RUF071 - of names, which are no paths
        with suppress(ObjectGone):
            yield from takewhile(lambda entry: entry.name <= last, self.objects.listing(bucket, prefix))

    def has_any(self, dir_uri: str) -> bool:
        """Whether the folder, `gs://…/`, holds any object, as far as this deployment may know."""
        try:
            return any(True for _ in self.objects.listing(*split_object_uri(dir_uri)))
        except ObjectGone:  # the bucket
            return False
        except AccessDenied:
            return True


def _present_version(arrived: ArrivedObject, now: Listed | None) -> ArrivedObject | None:
    if now is None:
        return None
    same = (arrived.crc32c, arrived.size_bytes) == (now.crc32c, now.size_bytes)
    is_there = same or now.generation == arrived.generation
    return replace(arrived, generation=now.generation, created_at=now.created_at) if is_there else None
