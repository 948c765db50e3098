"""What users dropped and trainers wrote: read only."""

from collections.abc import Sequence
from dataclasses import dataclass

from trainmaster.orchestrator.core.completion.outcome import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    FileSize,
    ModelDirectory,
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
        """The files under the `gs://…/` directory, and its manifest where there is one of decent size."""
        bucket, prefix = split_object_uri(model_uri)
        try:
            listed = list(self.objects.listing(bucket, prefix))
        except ObjectGone:
            listed = []  # without a bucket there is no model, and the run must end all the same
        sizes = {file.name[len(prefix) :]: file.size_bytes for file in listed}
        manifest_size = sizes.pop(MANIFEST_NAME, None)
        content: bytes | None = None
        if manifest_size is not None and manifest_size <= MAX_MANIFEST_BYTES:
            content = self._manifest(bucket, prefix + MANIFEST_NAME)
        files = tuple(FileSize(path=path, size_bytes=size) for path, size in sizes.items())
        return ModelDirectory(uri=model_uri, files=files, manifest=content)

    def _manifest(self, bucket: str, name: str) -> bytes | None:
        try:
            return self.objects.read(bucket, name).content
        except ObjectGone:
            return None
