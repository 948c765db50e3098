"""Files that users dropped and trainers wrote. Read only."""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.completion.locations import ModelLocation
from trainmaster.orchestrator.core.completion.model import (
    MANIFEST_NAME,
    MAX_FILES,
    METRICS_NAME,
    ModelDirectory,
    ModelFile,
    is_of_model,
)
from trainmaster.orchestrator.core.errors import AccessDenied, ObjectGone, ObjectTooLarge, ServiceFailed
from trainmaster.orchestrator.core.names import (
    RULES_PREFIX,
    has_form_of_run_id,
    is_rule_object,
    object_uri,
    split_object_uri,
)
from trainmaster.orchestrator.core.runs.record import short_reason
from trainmaster.orchestrator.core.sizes import MAX_MANIFEST_BYTES, MAX_METRICS_BYTES
from trainmaster.orchestrator.ports.objects import Listed, Objects, Stored
from trainmaster.orchestrator.stores.store import Store

LISTED_MAX = 10_000
"""Objects below rules/ that a tick lists: ten times as many as there may be rules."""


class Inbox(Store):
    """What users dropped."""

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        """The content of exactly that generation; by default, of the live object.

        Raises:
            ObjectGone: it was deleted or overwritten.
            ObjectTooLarge: it has more bytes.
        """
        return self.objects.read(bucket, name, generation, max_bytes=max_bytes)

    def describe(self, bucket: str, name: str, generation: int | None = None) -> Listed:
        """When exactly that generation was created, its size and its checksum; by default, of the live object.

        Raises:
            ObjectGone: it was deleted or overwritten.
        """
        return self.objects.describe(bucket, name, generation)

    def has(self, name: str) -> bool:
        """Whether an object of this name exists now. It costs one read, of no content."""
        try:
            self.objects.describe(self.bucket, name)
        except ObjectGone:
            return False
        return True

    def rules(self) -> tuple[Sequence[Listed], str | None]:
        """The rules among the first LISTED_MAX objects below rules/, by name, whatever else is beside them.

        With them comes the name of the last of these objects, if there may be more; None: all were listed.
        """
        listed = list(itertools.islice(self.objects.listing(self.bucket, RULES_PREFIX), LISTED_MAX))
        files = [entry for entry in listed if is_rule_object(entry.name)]
        return files, listed[-1].name if len(listed) == LISTED_MAX else None


@dataclass(frozen=True)
class Models:
    """What trainers wrote, in any bucket."""

    objects: Objects

    def look(self, places: Sequence[ModelLocation]) -> tuple[ModelDirectory, ...]:
        """What the places contain, up to the first that holds a model.

        Raises:
            AccessDenied: AIP_MODEL_DIR is not readable. For a place that the request names, the returned directory
                says so instead, because the run must end all the same.
        """
        looked: list[ModelDirectory] = []
        for place in places:
            looked.append(self._directory(place))
            if looked[-1].holds_model:
                break
        return tuple(looked)

    def metrics(self, uri: str) -> bytes | None:
        """The content of a metrics.json; None if it cannot be read now, or is too large.

        It costs one read. No error is raised: progress of a running job is only a convenience.
        """
        try:
            return self.objects.read(*split_object_uri(uri), max_bytes=MAX_METRICS_BYTES).content
        except (ObjectGone, ObjectTooLarge, AccessDenied, ServiceFailed):
            return None

    def _directory(self, place: ModelLocation) -> ModelDirectory:
        try:
            uri, prefix, listed = self._list(place)
        except ObjectGone:
            return ModelDirectory(uri=place.uri, is_named=place.is_named)  # there is no such bucket
        except AccessDenied as denied:
            if not place.is_named:
                raise
            return ModelDirectory(uri=place.uri, is_named=True, denied=_denial(place, denied))
        fresh, older = _by_age(listed[:MAX_FILES], prefix, place.since)
        contents, oversized = self._documents(split_object_uri(uri)[0], prefix, fresh)
        replaced = tuple(name for name, content in contents.items() if content is None)
        return ModelDirectory(
            uri=uri,
            files=tuple(_model_file(file, prefix) for file in fresh),
            has_more=len(listed) > MAX_FILES,
            manifest=contents.get(MANIFEST_NAME),
            metrics=contents.get(METRICS_NAME),
            oversized=oversized,
            replaced=replaced,
            is_named=place.is_named,
            older=older,
            since=place.since,
        )

    def _list(self, place: ModelLocation) -> tuple[str, str, list[Listed]]:
        """The URI of the directory or file, what names in it begin with, and at most MAX_FILES + 1 of its objects."""
        bucket, name = split_object_uri(place.uri.rstrip("/"))
        objects = list(itertools.islice(self.objects.listing(bucket, f"{name}/"), MAX_FILES + 1))
        if place.is_named and not any(is_of_model(entry.name[len(name) + 1 :]) for entry in objects):
            folder = name[: name.rfind("/") + 1]
            beside = (self._object(bucket, folder + file_name) for file_name in (MANIFEST_NAME, METRICS_NAME))
            file = self._object(bucket, name)
            if file is not None:
                return object_uri(bucket, name), folder, [file, *filter(None, beside)]
        return object_uri(bucket, f"{name}/"), f"{name}/", objects

    def _object(self, bucket: str, name: str) -> Listed | None:
        first = next(iter(self.objects.listing(bucket, name)), None)
        return first if first is not None and first.name == name else None

    def _documents(
        self, bucket: str, prefix: str, listed: Sequence[Listed]
    ) -> tuple[Mapping[str, bytes | None], tuple[str, ...]]:
        """The two documents next to the model, as they were listed, unless too large, and the names of those that are.

        The content is None if the listed generation is gone.
        """
        files = {file.name: file for file in listed}
        limits = ((MANIFEST_NAME, MAX_MANIFEST_BYTES), (METRICS_NAME, MAX_METRICS_BYTES))
        there = [(name, files[prefix + name], most) for name, most in limits if prefix + name in files]
        contents: dict[str, bytes | None] = {}
        for name, file, most in there:
            if file.size_bytes <= most:
                contents[name] = None
                with suppress(ObjectGone):
                    read = self.objects.read(bucket, file.name, file.generation, max_bytes=most)
                    contents[name] = read.content
        return contents, tuple(name for name, file, most in there if file.size_bytes > most)


def _by_age(
    listed: Sequence[Listed], prefix: str, since: datetime | None
) -> tuple[Sequence[Listed], tuple[str, ...]]:
    """The objects that may be the run's, and the paths of the model files that are older than the run."""
    if since is None:
        return listed, ()
    # Not those in a run's directory below a place that runs share.
    folders = ((entry, entry.name[len(prefix) :].split("/")[:-1]) for entry in listed)
    kept = [entry for entry, names in folders if not any(map(has_form_of_run_id, names))]
    older = (entry.name[len(prefix) :] for entry in kept if entry.created_at < since)
    return [entry for entry in kept if entry.created_at >= since], tuple(filter(is_of_model, older))


def _denial(place: ModelLocation, denied: AccessDenied) -> str:
    bucket, _ = split_object_uri(place.uri)
    grant = f"grant roles/storage.objectViewer on gs://{bucket} to the accounts of on-job-log and on-tick"
    return f"{short_reason(denied.reason)}; {grant}"


def _model_file(listed: Listed, prefix: str) -> ModelFile:
    return ModelFile(
        path=listed.name[len(prefix) :],
        size_bytes=listed.size_bytes,
        generation=listed.generation,
        crc32c=listed.crc32c,
        md5=listed.md5,
    )
