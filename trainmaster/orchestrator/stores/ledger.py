"""The run records, and the documents kept with them.

The record is the only object for which attempts compete; it changes by compare-and-set on its generation.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core import errors, names
from trainmaster.orchestrator.core.completion.model import RecordedFiles
from trainmaster.orchestrator.core.documents import codec
from trainmaster.orchestrator.core.events.self_test import Answer, self_test_object
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.requests.matrix import RUNS_MAX
from trainmaster.orchestrator.core.runs.end import ModelFiles
from trainmaster.orchestrator.core.runs.record import RECORD_SCHEMA, RunRecord, stored_form
from trainmaster.orchestrator.core.sizes import MAX_MARK_BYTES, MAX_MODEL_FILES_BYTES, MAX_RECORD_BYTES
from trainmaster.orchestrator.stores.store import Store

RACES_MAX = 5
"""How often a record may change under us before the event is left for redelivery: each change is progress elsewhere."""
ACTIVE_MAX = 50_000
"""Marked runs that one tick knows: 50 storage operations. It looks at a few thousand of them."""
GROUP_LISTED_MAX = 20_000
"""Ids of messages with keys begin alike: no search for a group looks at more."""


@dataclass(frozen=True, kw_only=True)
class Held:
    """A record as it was read, and the version that a replacement must name."""

    record: RunRecord
    version: int
    raw: object = field(default=None, repr=False, compare=False)
    """The record's JSON, with what a newer release may have written; None if this release wrote all of it."""


@dataclass(frozen=True, kw_only=True)
class Marker:
    """A run that has not ended, or whose steps after the end are not all done."""

    run_id: str
    created_at: datetime


class Ledger(Store):
    """The run records and the documents kept with them. Safe to use from several threads and processes."""

    _damaged = errors.RecordDamaged

    def find(self, run_id: str) -> Held | None:
        """The record, or None if the run has none.

        Raises:
            RecordDamaged: the object holds something else.
        """
        name = names.record_object(run_id)

        def parse(document: Any) -> RunRecord:
            if isinstance(document, dict) and document.get("schema") != RECORD_SCHEMA:
                found = f"expected {RECORD_SCHEMA}, found {document.get('schema')!r}"
                raise errors.RecordUnsupported(self._uri(name), found)
            return codec.decoded(RunRecord, document)

        read = self._parse(name, parse, MAX_RECORD_BYTES)
        record = read.document
        return None if record is None else Held(record=record, version=read.version, raw=read.raw)

    def present(self, run_id: str) -> Held:
        """The record, which was just read.

        Raises:
            RecordMoved: it no longer exists.
        """
        held = self.find(run_id)
        if held is None:
            raise errors.RecordMoved(run_id)
        return held

    def runs_of_group(self, group_id: str) -> Sequence[RunRecord]:
        """Those on record. Costs a listing of the runs whose ids begin like the group's, and a read of each of its own."""
        ids = [names.run_id_in_group(group_id, number) for number in range(1, RUNS_MAX + 1)]
        listed, _ = self._first(f"{names.record_object(group_id).rpartition('-')[0]}-", GROUP_LISTED_MAX)
        there = {entry.name for entry in listed}
        return [self.present(run_id).record for run_id in ids if names.record_object(run_id) in there]

    def create(self, record: RunRecord) -> Held:
        """Create the record. If a repeated write finds our own record after a lost response, it counts as created.

        Raises:
            RecordExists: another attempt wrote one first.
        """
        try:
            return self._put(record, None, 0)
        except errors.GenerationMoved as moved:
            raise errors.RecordExists(record.run_id) from moved

    def replace(self, held: Held, record: RunRecord) -> Held:
        """Replace the record, if it is still at `held.version`. As with `create`, a lost response still counts.

        Raises:
            RecordMoved: another attempt changed it first.
        """
        try:
            return self._put(record, held, held.version)
        except errors.GenerationMoved as moved:
            raise errors.RecordMoved(record.run_id) from moved

    def update(self, held: Held, change: Callable[[RunRecord], RunRecord | None]) -> Held:
        """The record after `change`, which is applied again to each newer record; unchanged if `change` returns None.

        Raises:
            RecordMoved: the record kept changing.
        """
        for _ in range(RACES_MAX):
            changed = change(held.record)
            if changed is None:
                return held
            with suppress(errors.RecordMoved):
                return self.replace(held, changed)
            held = self.find(held.record.run_id) or held
        raise errors.RecordMoved(held.record.run_id)

    def _put(self, record: RunRecord, before: Held | None, version: int) -> Held:
        name = names.record_object(record.run_id)
        whole, known = record, codec.encoded(record)
        document = known
        if before is not None and before.raw is not None:
            document = codec.with_unknown(known, codec.encoded(before.record), before.raw)
        record, content = stored_form(whole, document)
        try:
            written = self.objects.write(self.bucket, name, content, if_generation=version)
        except errors.GenerationMoved:
            # A client that repeats a write after a lost response sees that the object has changed, by its own
            # write. No two attempts write the same bytes, because each one writes its own random text.
            stored = self._find_bounded(name, MAX_RECORD_BYTES)
            if stored is None or stored.content != content:
                raise
            written = stored.generation
        has_unknown = record is whole and document != known
        return Held(record=record, version=written, raw=document if has_unknown else None)

    def mark_active(self, run_id: str) -> None:
        """Add the run to those that the reconciler checks. Safe to repeat."""
        self._mark(names.marker_object(run_id))

    def unmark(self, run_id: str) -> None:
        """Remove the run from those that the reconciler checks. Safe to repeat."""
        self.objects.delete(self.bucket, names.marker_object(run_id))

    def mark_job(self, job_name: str) -> None:
        """Note that the job was submitted here. Without the mark, which is tried once, the next tick finds the job's end."""
        with suppress(errors.ServiceFailed):
            self._mark(names.job_mark_object(job_id(job_name)), content=job_name.encode())

    def find_job(self, job_id: str) -> str | None:
        """The name of the job that was submitted here and has this id; None for all others."""
        stored = self._find_bounded(names.job_mark_object(job_id), MAX_MARK_BYTES)
        return stored.content.decode() or None if stored else None

    def active(self) -> tuple[Sequence[Marker], bool]:
        """The first ACTIVE_MAX marked runs, by id, and whether there are further ones."""
        listed, has_more = self._first(names.ACTIVE_PREFIX, ACTIVE_MAX)
        found = (
            Marker(run_id=names.run_id_of_marker(entry.name), created_at=entry.created_at) for entry in listed
        )
        return tuple(found), has_more

    def keep_submitted(self, run_id: str, document: Mapping[str, object]) -> tuple[str, str]:
        """Store the request as it was written, and return the object's URI and SHA-256.

        Safe to repeat: the same document is the same object.
        """
        return self._keep(names.submitted_object, run_id, document)

    def keep_model_files(self, files: RecordedFiles) -> tuple[str, str]:
        """Store the list of a model's files, and return the object's URI and SHA-256. Safe to repeat."""
        return self._keep(names.model_files_object, files.run_id, codec.encoded(files))

    def model_files(self, files: ModelFiles) -> RecordedFiles:
        """The list that a record refers to.

        Raises:
            DocumentDamaged: the object is gone, or is not the recorded one.
            ObjectTooLarge: the files' names are so long that the list is not read.
        """
        uri = files.listing_uri or ""
        stored = self._find(names.split_object_uri(uri)[1], MAX_MODEL_FILES_BYTES) if uri else None
        if stored is None or hashlib.sha256(stored.content).hexdigest() != files.listing_sha256:
            raise errors.DocumentDamaged(uri, "it is not the list of files that the run recorded")
        return codec.decoded(RecordedFiles, codec.parse_json(stored.content))

    def report(self, run_id: str, report: Mapping[str, object]) -> str:
        """Store the rejection report and return its URI. Safe to repeat."""
        name = names.report_object(run_id)
        self.objects.write(self.bucket, name, codec.json_bytes(report), if_generation=None)
        return self._uri(name)

    def unreport(self, run_id: str) -> None:
        """Remove the rejection report. Safe to repeat."""
        self.objects.delete(self.bucket, names.report_object(run_id))

    def keep_answer(self, answer: Answer) -> str:
        """Store the answer to a self-test, and return its URI. The first one, which has the true latency, stays."""
        name = self_test_object(answer.self_test_id)
        self._write_once(name, codec.json_bytes(codec.encoded(answer)))
        return self._uri(name)

    def _keep(self, name_of: Callable[[str, str], str], run_id: str, document: object) -> tuple[str, str]:
        sha256 = hashlib.sha256(codec.json_bytes(document)).hexdigest()
        name = name_of(run_id, sha256)
        self._write_once(name, codec.json_bytes(document))
        return self._uri(name), sha256

    def record_uri(self, run_id: str) -> str:
        """The record's URI."""
        return self._uri(names.record_object(run_id))
