"""Ledger, inbox and models over any object store: which object holds what, and under which precondition.

The record is the only thing two attempts may fight over; it changes by compare-and-set on its generation.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from trainmaster.orchestrator.adapters.objects import Objects, json_bytes
from trainmaster.orchestrator.core.completion.outcome import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    FileSize,
    ModelDirectory,
)
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.errors import (
    GenerationMoved,
    ObjectGone,
    RecordDamaged,
    RecordExists,
    RecordMoved,
    RecordUnsupported,
)
from trainmaster.orchestrator.core.names import (
    ACTIVE_PREFIX,
    RULES_PREFIX,
    SWEPT_TO_OBJECT,
    is_rule_object,
    marker_object,
    object_uri,
    record_object,
    report_object,
    run_id_of_marker,
    split_object_uri,
    status_object,
    submitted_object,
)
from trainmaster.orchestrator.core.runs.record import RECORD_SCHEMA, RunRecord
from trainmaster.orchestrator.ports.inbox import DroppedRule
from trainmaster.orchestrator.ports.ledger import DropStatus, Held, Marker, SubmittedObject

STATUS_RACES_MAX = 10


class StoredLedger:
    """The ledger bucket. See `trainmaster.orchestrator.ports.ledger.Ledger` for what each verb promises."""

    def __init__(self, objects: Objects, bucket: str) -> None:
        self._objects = objects
        self._bucket = bucket

    def find(self, run_id: str) -> Held | None:
        name = record_object(run_id)
        try:
            stored = self._objects.read(self._bucket, name)
        except ObjectGone:
            return None
        record = _record(stored.content, object_uri(self._bucket, name))
        return Held(record=record, version=stored.generation)

    def create(self, record: RunRecord) -> Held:
        try:
            return self._put(record, 0)
        except GenerationMoved as moved:
            raise RecordExists(record.run_id) from moved

    def replace(self, held: Held, record: RunRecord) -> Held:
        try:
            return self._put(record, held.version)
        except GenerationMoved as moved:
            raise RecordMoved(record.run_id) from moved

    def _put(self, record: RunRecord, version: int) -> Held:
        name, content = record_object(record.run_id), json_bytes(encoded(record))
        try:
            written = self._objects.write(
                self._bucket, name, content, if_generation=version, metadata=_metadata(record)
            )
        except GenerationMoved:
            # A client that repeats a write whose answer was lost is told that the object has moved: by
            # itself. No two attempts write the same bytes, for each puts its own random text in.
            stored = self._read_or_none(name)
            if stored is None or stored[0] != content:
                raise
            written = stored[1]
        return Held(record=record, version=written)

    def _read_or_none(self, name: str) -> tuple[bytes, int] | None:
        try:
            stored = self._objects.read(self._bucket, name)
        except ObjectGone:
            return None
        return stored.content, stored.generation

    def mark_active(self, run_id: str) -> None:
        self._objects.write(
            self._bucket, marker_object(run_id), b"", if_generation=None, content_type="text/plain"
        )

    def unmark(self, run_id: str) -> None:
        self._objects.delete(self._bucket, marker_object(run_id))

    def active(self) -> Iterator[Marker]:
        for listed in self._objects.listing(self._bucket, ACTIVE_PREFIX):
            yield Marker(run_id=run_id_of_marker(listed.name), created_at=listed.created_at)

    def swept_to(self) -> Marker | None:
        stored = self._read_or_none(SWEPT_TO_OBJECT)
        try:
            return None if stored is None else decoded(Marker, json.loads(stored[0]))
        except ValueError:
            return None  # a hint that cannot be read costs one sweep its place, no run its turn

    def keep_swept_to(self, marker: Marker | None) -> None:
        if marker is None:
            self._objects.delete(self._bucket, SWEPT_TO_OBJECT)
        else:
            content = json_bytes(encoded(marker))
            self._objects.write(self._bucket, SWEPT_TO_OBJECT, content, if_generation=None)

    def tell_status(self, status: DropStatus) -> None:
        name = status_object(status.dropped_name)
        document = json_bytes({"schema": "drop_status.v1", **_mapping(encoded(status))})
        for _ in range(STATUS_RACES_MAX):
            present = self._read_or_none(name)
            if present is not None and _order(present[0]) >= (status.generation, status.record_generation):
                return
            try:
                self._objects.write(self._bucket, name, document, if_generation=present[1] if present else 0)
            except GenerationMoved:
                continue
            return
        raise GenerationMoved(object_uri(self._bucket, name), 0)

    def keep_submitted(self, run_id: str, document: Mapping[str, object]) -> SubmittedObject:
        content = json_bytes(document)
        sha256 = hashlib.sha256(content).hexdigest()
        name = submitted_object(run_id, sha256)
        with suppress(GenerationMoved):  # an earlier attempt wrote it: the name says what it holds
            self._objects.write(self._bucket, name, content, if_generation=0)
        return SubmittedObject(uri=object_uri(self._bucket, name), sha256=sha256)

    def report(self, run_id: str, report: Mapping[str, object]) -> str:
        name = report_object(run_id)
        self._objects.write(self._bucket, name, json_bytes(report), if_generation=None)
        return object_uri(self._bucket, name)

    def unreport(self, run_id: str) -> None:
        self._objects.delete(self._bucket, report_object(run_id))

    def record_uri(self, run_id: str) -> str:
        return object_uri(self._bucket, record_object(run_id))


def _record(content: bytes, uri: str) -> RunRecord:
    try:
        document = json.loads(content)
        if isinstance(document, dict) and document.get("schema") != RECORD_SCHEMA:
            raise RecordUnsupported(uri, f"expected {RECORD_SCHEMA}, found {document.get('schema')!r}")
        return decoded(RunRecord, document)
    except ValueError as error:
        raise RecordDamaged(uri, str(error)) from error


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _metadata(record: RunRecord) -> dict[str, str]:
    """What a listing of the runs shows without opening them."""
    fields = {
        "state": record.state.value,
        "model_name": record.model_name,
        "model_uri": record.model.uri if record.model else None,
    }
    return {key: value for key, value in fields.items() if value}


def _order(content: bytes) -> tuple[int, int]:
    """The generations of the drop and of its record, in a status; content that is no status sorts first."""
    try:
        status = json.loads(content)
        return int(status["generation"]), int(status.get("record_generation", 0))
    except (ValueError, KeyError, TypeError, AttributeError):
        return -1, -1


class StoredInbox:
    """The inbox bucket, read only."""

    def __init__(self, objects: Objects, bucket: str) -> None:
        self._objects = objects
        self._bucket = bucket

    def read(self, bucket: str, name: str, generation: int) -> bytes:
        return self._objects.read(bucket, name, generation).content

    def latest(self, bucket: str, name: str) -> tuple[bytes, int]:
        stored = self._objects.read(bucket, name)
        return stored.content, stored.generation

    def rules(self) -> Sequence[DroppedRule]:
        return [
            DroppedRule(name=each.name, generation=each.generation, size_bytes=each.size_bytes)
            for each in self._objects.listing(self._bucket, RULES_PREFIX)
            if is_rule_object(each.name)
        ]


@dataclass(frozen=True)
class StoredModels:
    """Whatever buckets models are written to, read only."""

    objects: Objects

    def look(self, model_uri: str) -> ModelDirectory:
        bucket, prefix = split_object_uri(model_uri)
        try:
            listed = list(self.objects.listing(bucket, prefix))
        except ObjectGone:
            listed = []  # without a bucket there is no model, and the run must end all the same
        files = tuple(FileSize(path=file.name[len(prefix) :], size_bytes=file.size_bytes) for file in listed)
        manifest = next((file for file in files if file.path == MANIFEST_NAME), None)
        content: bytes | None = None
        if manifest is not None and manifest.size_bytes <= MAX_MANIFEST_BYTES:
            content = self._manifest(bucket, prefix + MANIFEST_NAME)
        return ModelDirectory(
            uri=model_uri, files=tuple(file for file in files if file.path != MANIFEST_NAME), manifest=content
        )

    def _manifest(self, bucket: str, name: str) -> bytes | None:
        try:
            return self.objects.read(bucket, name).content
        except ObjectGone:
            return None
