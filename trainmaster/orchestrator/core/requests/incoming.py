"""The request or order of an event, and the identity by which every redelivery of it is known."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.orchestrator.core import names
from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.documents.document import Document, parse_line_numbers
from trainmaster.orchestrator.core.documents.faults import listed, nearest, plain, shown
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope, pubsub_message
from trainmaster.orchestrator.core.runs import sender
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.core.runs.same_request import file_id

ORDER_KEYS = ("fire", "rollback", "cancel", "approve", "clean")
"""A document is an order when it has one of these keys; no request has such a key."""

MESSAGE_BASE = "message"
GENERATION_MAX = 2**63 - 1
"""Generations and sizes are 64-bit integers: https://cloud.google.com/storage/docs/json_api/v1/objects#resource"""
_GENERATION_SUFFIX = re.compile(r"#\d+$")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """Where an uploaded request or rule lies. Its size and checksum are known before anything is read."""

    bucket: str
    name: str
    generation: int
    size_bytes: int
    content_id: str | None = None
    """Its `file_id`, as the event says; None if it does not."""

    @property
    def uri(self) -> str:
        return names.object_uri(self.bucket, self.name)

    @property
    def identity(self) -> str:
        return f"{self.uri}#{self.generation}"


@dataclass(frozen=True, kw_only=True)
class IncomingDocument:
    """A request or rule that came in, not yet read: either an object to fetch or a message's own bytes.

    A rule starts no run; its rejection report is kept under `run_id`.
    """

    run_id: str
    source: Source
    content: StoredObject | bytes

    def of_team(self, team: str | None) -> "IncomingDocument":
        """The same, from this team."""
        return replace(self, source=replace(self.source, team=team))

    def of_content(self, content_id: str | None) -> "IncomingDocument":
        """The same, with this content."""
        return replace(self, source=replace(self.source, content_id=content_id))

    def without_key(self) -> "IncomingDocument":
        """The message as a separate request, known by the message's id alone."""
        source = replace(self.source, idempotency_key=None, content_id=None)
        return replace(self, run_id=_run_id_of_message(source), source=source)


@dataclass(frozen=True, kw_only=True)
class Ignored:
    """An event that asks for nothing, and why. `dropped`: the file whose user should know; `run_id`: what it asked for."""

    reason: str
    dropped: StoredObject | None = None
    severity: str = "INFO"
    run_id: str | None = None


def parse_upload(envelope: Envelope, inbox_bucket: str) -> IncomingDocument | Ignored:
    """The request or rule that the finalized object may be.

    Raises:
        EventMalformed: the event does not say which object it is about.
    """
    fields = envelope.data if isinstance(envelope.data, Mapping) else {}
    name = str(fields.get("name") or _GENERATION_SUFFIX.sub("", envelope.subject).removeprefix("objects/"))
    bucket = str(fields.get("bucket") or "")
    if bucket != inbox_bucket:
        return Ignored(reason=f"bucket {bucket!r} is not the inbox")
    if not (names.is_request_object(name) or names.is_rule_object(name)):
        return _ignored_upload(envelope, bucket, name)
    created_at = time_or(fields.get("timeCreated"), envelope.time)
    dropped, metadata = parse_stored_object(envelope, bucket, name), mapping_at(fields, "metadata")
    return drop_of(dropped, envelope.id, created_at, envelope.received_at, metadata)


def _ignored_upload(envelope: Envelope, bucket: str, name: str) -> Ignored:
    if names.is_temporary(name):
        return Ignored(reason=f"this file is ignored: {plain(name)!r} is hidden or temporary")
    folder, known = name.partition("/")[0], (names.REQUESTS_PREFIX, names.RULES_PREFIX)
    if name.startswith(known):
        problem = f"{plain(name)!r} does not end in any of {listed(names.REQUEST_SUFFIXES)}"
        repair = "rename it"
    else:
        problem = f"{plain(name)!r} is not in {listed(known)}"
        repair = nearest(f"{folder}/", known) or "copy a request to requests/, a rule to rules/"
        repair += "; a file that a rule's request_uri names may stay where it is"
    reason = f"this file is ignored: {problem}; {repair}"
    try:
        return Ignored(reason=reason, dropped=parse_stored_object(envelope, bucket, name))
    except EventMalformed:
        return Ignored(reason=reason)


def parse_stored_object(envelope: Envelope, bucket: str, name: str) -> StoredObject:
    """The object of this name, of whose generation the event tells.

    Raises:
        EventMalformed: no object can have such a name, generation or size.
    """
    fields = envelope.data if isinstance(envelope.data, Mapping) else {}
    if not (names.is_object_name(name) and names.is_object_name(bucket)):
        where = plain(names.object_uri(bucket, name))
        raise EventMalformed(f"event {envelope.id!r} names {where}, which is not a valid object name")
    generation, size_bytes = _integer(fields.get("generation")), _integer(fields.get("size", 0))
    without, of_file = f"event {envelope.id!r} has no valid", f"of {plain(name)!r}"
    if not generation:
        said = f"expected an integer from 1 to {GENERATION_MAX}, found {shown(fields.get('generation'))}"
        raise EventMalformed(f"{without} generation {of_file}: {said}")
    if size_bytes is None:
        raise EventMalformed(f"{without} size {of_file}: found {shown(fields['size'])}")
    content_id = file_id(size_bytes, str(fields.get("crc32c") or ""), mapping_at(fields, "metadata"))
    stored = StoredObject(bucket=bucket, name=name, generation=generation, size_bytes=size_bytes)
    return replace(stored, content_id=content_id)


def _integer(value: object) -> int | None:
    """A 64-bit integer that is not negative, in decimal digits; None for anything else."""
    text = str(value)
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(GENERATION_MAX))
    return int(text) if is_number and int(text) <= GENERATION_MAX else None


def drop_of(
    dropped: StoredObject,
    event_id: str,
    created_at: datetime,
    received_at: datetime,
    metadata: Mapping[str, object],
) -> IncomingDocument:
    """What came in with this generation of a file, which has this custom metadata.

    A request's `run_id` takes its time from `created_at`: by an event, until the object itself says when it was created.
    A rule's has no time.
    """
    name, key, is_rule = names.stem(dropped.name), dropped.identity, names.is_rule_object(dropped.name)
    return IncomingDocument(
        run_id=names.run_id_of_key(name, key) if is_rule else names.run_id_at(name, created_at, key),
        source=Source(
            kind="rule_drop" if is_rule else "upload",
            event_id=event_id,
            event_time=created_at,
            received_at=received_at,
            uri=dropped.uri,
            object_name=dropped.name,
            generation=dropped.generation,
            content_id=dropped.content_id,
            sent_by=sender_from(metadata),
            commit=commit_from(metadata),
            forced=forced_text(metadata),
        ),
        content=dropped,
    )


def sender_from(metadata: Mapping[str, object]) -> sender.Sender | None:
    """The sender that the metadata name; None if they name none."""
    for key, by in ((sender.ACCOUNT_KEY, sender.Surety.CREDENTIALS), (sender.NAME_KEY, sender.Surety.CLAIM)):
        if name := _metadata_text(metadata.get(key)):
            return sender.Sender(name=name, by=by)
    return None


def commit_from(metadata: Mapping[str, object]) -> sender.Commit | None:
    """The commit that the metadata name; None if they name none, or what no commit is called."""
    commit_id = _metadata_text(metadata.get(sender.COMMIT_KEY))
    if not _COMMIT.fullmatch(commit_id):
        return None
    branch = _metadata_text(metadata.get(sender.BRANCH_KEY)) or None
    dirty = {"true": True, "false": False}.get(_metadata_text(metadata.get(sender.DIRTY_KEY)))
    return sender.Commit(id=commit_id, branch=branch, dirty=dirty)


def forced_text(metadata: Mapping[str, object]) -> str | None:
    """What the check said that the sender passed over with --force, by the metadata; None if they say nothing."""
    return _metadata_text(metadata.get(sender.FORCED_KEY), sender.FORCED_MAX_CHARS) or None


def _metadata_text(value: object, most: int = sender.VALUE_MAX_CHARS) -> str:
    """One printable line of at most that many characters; empty for anything but text."""
    text = value if isinstance(value, str) else ""
    return "".join(char if char.isprintable() else " " for char in text[:most]).strip()


def parse_message(envelope: Envelope, team: str | None = None) -> IncomingDocument:
    """The request that the message carries, from this team.

    With the attribute `idempotency_key`, every message of that key and document is the same request, whenever it was
    published; so the run's id then has no time in it. Without, the message's id is its identity. Of two teams neither
    key nor id is the same, for any publisher can set both.

    Raises:
        EventMalformed: the event holds no readable message.
    """
    message = pubsub_message(envelope)
    source = Source(
        kind="message",
        event_id=envelope.id,
        event_time=message.publish_time,
        received_at=envelope.received_at,
        message_id=message.message_id,
        idempotency_key=message.attributes.get(names.IDEMPOTENCY_KEY) or None,
        team=team,
        sent_by=sender_from(message.attributes),
        commit=commit_from(message.attributes),
        forced=forced_text(message.attributes),
    )
    return IncomingDocument(run_id=_run_id_of_message(source), source=source, content=message.data)


def _run_id_of_message(source: Source) -> str:
    if source.idempotency_key is not None:
        return run_id_of_message_key(source.idempotency_key, source.team)
    identity = _of_team(source.team, f"message:{source.message_id}")
    return names.run_id_at(MESSAGE_BASE, source.event_time, identity)


def run_id_of_message_key(key: str, team: str | None = None) -> str:
    """The id of the run, or the order, of every message of the team with this idempotency key."""
    return names.run_id_of_key(MESSAGE_BASE, _of_team(team, f"idempotency_key:{key}"))


def _of_team(team: str | None, identity: str) -> str:
    return identity if team is None else f"team:{team}:{identity}"


def submitted_document(run_id: str, dialect: str, read: Document) -> Mapping[str, object]:
    """The request as it is kept beside the canonical one: schemas/submitted_request.v1.schema.json."""
    return {
        "schema": "submitted_request.v1",
        "run_id": run_id,
        "dialect": dialect,
        "text": read.content.decode(),
        "lines": parse_line_numbers(read.text, as_json=read.as_json),
    }


def is_order(document: object) -> bool:
    """Whether the document is an order: it starts no job by itself."""
    return isinstance(document, dict) and not document.keys().isdisjoint(ORDER_KEYS)
