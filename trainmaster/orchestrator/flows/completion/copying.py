"""Copies a model to the champions bucket, as far as one attempt may; the next one continues.

A copy that exists is never replaced: a crashed or concurrent attempt wrote it, from the same generation.
"""

from dataclasses import replace

from trainmaster.orchestrator.core.champions.copy import FileCopy, ModelCopy, NotCopied, planned_copy
from trainmaster.orchestrator.core.errors import GenerationMoved, ObjectGone, ObjectTooLarge, ServiceFailed
from trainmaster.orchestrator.core.names import champion_copy_prefix, object_uri
from trainmaster.orchestrator.core.runs.end import Completion, LongCopy
from trainmaster.orchestrator.flows.lifecycle.finish import End, update_completion
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.ports.objects import Listed

FILES_AT_ONCE = 200
BYTES_AT_ONCE = 100 << 30
"""What one attempt copies, except that a larger file is copied whole: it is limited by the service's own calls."""


def copy_model(end: End, model_name: str) -> ModelCopy | NotCopied | str:
    """Copy the model that the run recorded; or what the copy waits for. Safe to repeat, and at the same time.

    The record says how the next attempt continues a file that takes several calls.

    Raises:
        DocumentDamaged: the ledger no longer has the list of the model's files.
    """
    services, record = end.services, end.record
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
    return _copy_files(end, missing) or copy


def _copy_files(end: End, missing: list[FileCopy]) -> NotCopied | str | None:
    """Copy the files; or why that stopped before the last one."""
    services, long, copied_bytes = end.services, (end.record.completion or Completion()).long_copy, 0
    for number, file_copy in enumerate(missing):
        left = f"copying the model: {len(missing) - number} files are left"
        if number >= FILES_AT_ONCE or copied_bytes >= BYTES_AT_ONCE:
            return _wait(end, left)
        token = long.token if long and long.name == file_copy.name else None
        try:
            copied = services.champion_copies.copy(file_copy.source, file_copy.name, token)
        except ObjectGone:
            why = f"{file_copy.source_text}, was replaced or deleted after the run had ended"
            return NotCopied(reason=why)
        except GenerationMoved:
            copied = services.champion_copies.describe(file_copy.name)
        except ServiceFailed as failed:
            if token is None:
                raise
            # The service forgets a token after a week: the next attempt copies this file from its beginning.
            return _wait(end, f"copying the model: {failed}")
        if isinstance(copied, str):
            return _wait(end, left, LongCopy(name=file_copy.name, token=copied))
        if not _is_whole(copied, file_copy):
            return _foreign(services, file_copy)
        copied_bytes += file_copy.file.size_bytes
    return None


def _wait(end: End, reason: str, long: LongCopy | None = None) -> str:
    """Record how the next attempt continues the file that takes several calls, if one does."""
    end.held = update_completion(end.services, end.held, lambda found: replace(found, long_copy=long))
    return reason


def _is_whole(found: Listed, file_copy: FileCopy) -> bool:
    return file_copy.is_whole(found.size_bytes, found.crc32c, found.md5)


def _foreign(services: Services, file_copy: FileCopy) -> NotCopied:
    uri = object_uri(services.buckets.champions, file_copy.name)
    return NotCopied(reason=f"{uri} is another object than {file_copy.source_text}")
