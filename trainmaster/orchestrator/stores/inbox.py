"""What users dropped and trainers wrote: read only."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.orchestrator.core.completion.model import (
    MANIFEST_NAME,
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    MAX_METRICS_BYTES,
    METRICS_NAME,
    ModelDirectory,
    ModelFile,
)
from trainmaster.orchestrator.core.errors import ObjectGone
from trainmaster.orchestrator.core.names import RULES_PREFIX, is_rule_object, split_object_uri
from trainmaster.orchestrator.ports.objects import Listed, Objects
from trainmaster.orchestrator.stores.store import Store


class Inbox(Store):
    """What users dropped."""

    def read(self, bucket: str, name: str, generation: int) -> bytes:
        """The content of that very generation.

        Raises:
            ObjectGone: it was deleted or written over.
        """
        return self.objects.read(bucket, name, generation).content

    def latest(self, bucket: str, name: str) -> tuple[bytes, int]:
        """The content as it is now, and its generation.

        Raises:
            ObjectGone: there is none.
        """
        stored = self.objects.read(bucket, name)
        return stored.content, stored.generation

    def rules(self) -> Sequence[Listed]:
        """Every file that the inbox takes for a rule."""
        return [each for each in self.objects.listing(self.bucket, RULES_PREFIX) if is_rule_object(each.name)]


@dataclass(frozen=True)
class Models:
    """What trainers left behind, in whatever buckets."""

    objects: Objects

    def look(self, model_uri: str) -> ModelDirectory:
        """The files under the `gs://…/` directory, and the two documents beside the model where they are of decent size."""
        bucket, prefix = split_object_uri(model_uri)
        try:
            listed = list(itertools.islice(self.objects.listing(bucket, prefix), MAX_FILES + 1))
        except ObjectGone:
            listed = []  # without a bucket there is no model, and the run must end all the same
        sizes = {file.name: file.size_bytes for file in listed}
        contents, oversized = {}, []
        for name, most in ((MANIFEST_NAME, MAX_MANIFEST_BYTES), (METRICS_NAME, MAX_METRICS_BYTES)):
            size = sizes.get(prefix + name)
            if size is not None and size <= most:
                contents[name] = self._content(bucket, prefix + name)
            elif size is not None:
                oversized.append(name)
        return ModelDirectory(
            uri=model_uri,
            files=tuple(_model_file(file, prefix) for file in listed[:MAX_FILES]),
            has_more=len(listed) > MAX_FILES,
            manifest=contents.get(MANIFEST_NAME),
            metrics=contents.get(METRICS_NAME),
            oversized=tuple(oversized),
        )

    def _content(self, bucket: str, name: str) -> bytes | None:
        try:
            return self.objects.read(bucket, name).content
        except ObjectGone:
            return None


def _model_file(listed: Listed, prefix: str) -> ModelFile:
    return ModelFile(
        path=listed.name[len(prefix) :],
        size_bytes=listed.size_bytes,
        generation=listed.generation,
        crc32c=listed.crc32c,
        md5=listed.md5,
    )
