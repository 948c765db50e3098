"""The copy of a champion's model in the champions bucket: what it consists of, and what makes it impossible.

A model in the models bucket can be overwritten by any job of its team, so it is copied by the generations that its
run recorded before its reign begins. Only the service writes the copies, and it never replaces one.
"""

from dataclasses import dataclass, replace

from trainmaster.orchestrator.core.champions.champion import Reign
from trainmaster.orchestrator.core.completion import model
from trainmaster.orchestrator.core.names import is_object_name, object_uri, split_object_uri


@dataclass(frozen=True, kw_only=True)
class FileCopy:
    """One object to copy. `source`: bucket, name and generation; `name`: the copy's."""

    source: tuple[str, str, int]
    name: str
    file: model.ModelFile

    @property
    def source_text(self) -> str:
        bucket, name, generation = self.source
        return f"{object_uri(bucket, name)}, generation {generation}"

    def is_whole(self, size_bytes: int, crc32c: str, md5: str | None) -> bool:
        """Whether an object with this size and these checksums is the recorded file; either may lack an MD5 hash."""
        if (size_bytes, crc32c) != (self.file.size_bytes, self.file.crc32c):
            return False
        return md5 is None or self.file.md5 is None or md5 == self.file.md5


@dataclass(frozen=True, kw_only=True)
class ModelCopy:
    """A model's copy. `uri` ends in `/` unless the model is a single file; the documents beside it come last."""

    uri: str
    files: tuple[FileCopy, ...]


@dataclass(frozen=True, kw_only=True)
class NotCopied:
    """Why the model can never be copied; the text continues a sentence."""

    reason: str


def planned_copy(recorded: model.RecordedFiles, bucket: str, prefix: str) -> ModelCopy | NotCopied:
    """The copy of the recorded files below `prefix`, which ends in `/`."""
    folder, _, single = recorded.model_uri.rpartition("/")
    from_bucket, from_prefix = split_object_uri(f"{folder}/")
    files = tuple(
        FileCopy(
            source=(from_bucket, from_prefix + file.path, file.generation),
            name=prefix + file.path,
            file=file,
        )
        for file in (*recorded.files, *recorded.documents)
    )
    too_long = next((file_copy for file_copy in files if not is_object_name(file_copy.name)), None)
    if too_long is not None:
        return NotCopied(reason=f"the name of {too_long.source_text} is too long for a copy")
    return ModelCopy(uri=object_uri(bucket, prefix + single), files=files)


def served_from(copy: ModelCopy, reign: Reign) -> Reign:
    """The reign with the copy in place of the model that the run saved."""
    folder = copy.uri.rpartition("/")[0]
    lineage = replace(
        reign.lineage,
        manifest_uri=f"{folder}/{model.MANIFEST_NAME}" if reign.lineage.manifest_uri else None,
        metrics_uri=f"{folder}/{model.METRICS_NAME}" if reign.lineage.metrics_uri else None,
    )
    return replace(reign, model_uri=copy.uri, lineage=lineage)
