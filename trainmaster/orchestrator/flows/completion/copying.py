"""Copies a model to the champions bucket, as far as one attempt may; the next one continues.

A copy that exists is never replaced: a crashed or concurrent attempt wrote it, from the same generation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmaster.orchestrator.core.champions.copy import FileCopy, ModelCopy, NotCopied, planned_copy
from trainmaster.orchestrator.core.errors import GenerationMoved, ObjectGone, ObjectTooLarge, ServiceFailed
from trainmaster.orchestrator.core.names import champion_copy_prefix, object_uri
from trainmaster.orchestrator.core.runs.end import LongCopy
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.lifecycle.finish import End, update_completion
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.ports.objects import Listed, Unfinished

FILES_AT_ONCE = 200
BYTES_AT_ONCE = 100 << 30
"""What one attempt copies, except that a larger file is copied whole: it is limited by the service's own calls."""


@dataclass(frozen=True, kw_only=True)
class StillCopying:
    """The attempt ended before the copy was whole. `long`: how the next one continues the file that takes several calls."""

    reason: str
    long: LongCopy | None = None


def keep_long_copy(end: End, long_copy: LongCopy | None) -> None:
    """Record how the next attempt continues the file that takes several calls."""
    services = end.services
    end.held = update_completion(services, end.held, lambda found: replace(found, long_copy=long_copy))


def copy_model(
    services: Services, record: RunRecord, model_name: str
) -> ModelCopy | NotCopied | StillCopying:
    """Copy the model that the run recorded. Safe to repeat, and at the same time.

    Raises:
        DocumentDamaged: the ledger no longer has the list of the model's files.
    """
    files = record.model.files if record.model else None
    if files is None or files.listing_uri is None or files.has_more:
        return NotCopied(reason="its record does not list every file of its model")
    prefix = champion_copy_prefix(model_name, record.run_id, record.source.team)
    try:
        recorded = services.ledger.model_files(files)
    except ObjectTooLarge as large:
        return NotCopied(reason=str(large))
    copy = planned_copy(recorded, services.buckets.champions, prefix)
    if isinstance(copy, NotCopied):
        return copy
    there = services.champion_copies.below(prefix, len(copy.files))
    missing = [file_copy for file_copy in copy.files if file_copy.name not in there]
    for file_copy in copy.files:
        if file_copy.name in there and not _is_whole(there[file_copy.name], file_copy):
            return _foreign(services, file_copy)
    return next(_copy_files(services, missing, record), copy)


def _copy_files(
    services: Services, missing: list[FileCopy], record: RunRecord
) -> Iterator[NotCopied | StillCopying]:
    """Copy the files, and yield why that must stop before the last one."""
    long = record.completion.long_copy if record.completion else None
    copied_bytes = 0
    for number, file_copy in enumerate(missing):
        left = f"copying the model: {len(missing) - number} files are left"
        if number >= FILES_AT_ONCE or copied_bytes >= BYTES_AT_ONCE:
            yield StillCopying(reason=left)
        copied = _copy(services, file_copy, long.token if long and long.name == file_copy.name else None)
        match copied:
            case Unfinished(token=token):
                yield StillCopying(reason=left, long=LongCopy(name=file_copy.name, token=token))
            case NotCopied() | StillCopying():
                yield copied
            case Listed() if not _is_whole(copied, file_copy):
                yield _foreign(services, file_copy)
        copied_bytes += file_copy.file.size_bytes


def _copy(
    services: Services, file_copy: FileCopy, token: str | None
) -> Listed | Unfinished | NotCopied | StillCopying:
    try:
        return services.champion_copies.copy(file_copy.source, file_copy.name, token)
    except ObjectGone:
        return NotCopied(reason=f"{file_copy.source_text}, was replaced or deleted after the run had ended")
    except GenerationMoved:
        return services.champion_copies.describe(file_copy.name)
    except ServiceFailed as failed:
        if token is None:
            raise
        # The service forgets a token after a week: the next attempt copies this file from its beginning.
        return StillCopying(reason=f"copying the model: {failed}")


def _is_whole(found: Listed, file_copy: FileCopy) -> bool:
    return file_copy.is_whole(found.size_bytes, found.crc32c, found.md5)


def _foreign(services: Services, file_copy: FileCopy) -> NotCopied:
    uri = object_uri(services.buckets.champions, file_copy.name)
    return NotCopied(reason=f"{uri} is another object than {file_copy.source_text}")
