"""Sends a sound request, and waits until the service has recorded it."""

import base64
import hashlib
import shlex
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound, RequestRefused, TimedOut
from trainmaster.client.find import Run, read_document, read_run
from trainmaster.client.records import read_json
from trainmaster.client.submission.examination import Examination
from trainmaster.client.submission.pack import Packed
from trainmaster.client.submission.sender import read_commit, sender_metadata
from trainmaster.client.terminal import one_line
from trainmaster.client.wait import poll
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import (
    REQUESTS_PREFIX,
    UPLOAD_ID,
    in_team,
    is_run_id,
    message_status_object,
    object_uri,
    record_object,
    script_object,
    split_object_uri,
    status_object,
)
from trainmaster.orchestrator.core.requests.incoming import StoredObject, drop_of, run_id_of_message_key
from trainmaster.orchestrator.core.requests.matrix import MATRIX
from trainmaster.orchestrator.core.runs.drop_status import DEAD_LETTER, RETRYING
from trainmaster.orchestrator.core.runs.record import RunGroup
from trainmaster.orchestrator.core.runs.sender import FORCED_KEY, FORCED_MAX_CHARS
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from google.cloud.storage import Blob

RECORDED_WITHIN_S = 30.0
"""How long the service usually needs at most, its start included."""
LAUNCH_S = 3.0
"""How much longer it needs for each run of a matrix: the status follows when all are launched."""
UPLOADS_MAX = 100
"""How often an upload is tried while others upload under the same name."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request that the service has, or will have once its event is delivered.

    Attributes:
        run_id: as the service will name the run.
        where: the URI of the uploaded object, or the name of the topic.
        status_name: where the ledger will have its status.
        generation: of the uploaded object; None for a message.
        is_repeated: the key of this message had started the run already, with the same request.
        runs: how many a matrix asks for, whose group has `run_id`; None without one, or if it was refused whole.
        is_refused: the service has refused it.
    """

    run_id: str
    where: str
    status_name: str
    generation: int | None = None
    is_repeated: bool = False
    runs: int | None = None
    is_refused: bool = False

    @property
    def run_ids(self) -> tuple[str, ...]:
        """The ids of the runs that it starts: `run_id`, also of a refused request, or those of the group with this id."""
        if self.runs is None:
            return (self.run_id,)
        return RunGroup(id=self.run_id, number=1, runs=self.runs).run_ids


def as_refused(sent: Sent, status: Mapping[str, Any]) -> Sent:
    """What was sent and refused, by its status: a matrix that was refused whole has one record, and no runs."""
    return replace(sent, is_refused=True, runs=sent.runs if status.get("run_id") in sent.run_ids else None)


def sent_document(sent: Sent, run_id: str) -> dict[str, Any]:
    """One of its runs, as `trainmaster submit -o json` prints it."""
    group = {} if sent.runs is None else {"group": sent.run_id}
    generation = {} if sent.generation is None else {"generation": str(sent.generation)}
    return {"run_id": run_id, "sent_to": sent.where, **group, **generation}


def check_names(examined: Sequence[Examination]) -> None:
    """Refuse requests, or rules, that would overwrite each other in the inbox.

    Raises:
        ClientRefused: two files have one name.
    """
    names = [each.object_name for each in examined]
    twice = [each.title for each in examined if names.count(each.object_name) > 1]
    if twice:
        raise ClientRefused(
            f"{', '.join(twice)} have the same name in the inbox. Rename one, or send them one after the other."
        )


def send_script(clients: Clients, packed: Packed, team: str | None) -> tuple[str, bool]:
    """The URI of the script's archive in the data bucket, and whether it was uploaded now: it may be there already."""
    from google.api_core.exceptions import PreconditionFailed

    bucket, name = clients.context.data_bucket, script_object(packed.sha256, team)
    uri = object_uri(bucket, name)
    try:
        clients.storage.bucket(bucket).blob(name).upload_from_string(
            packed.content, content_type="application/gzip", if_generation_match=0
        )
    except PreconditionFailed:
        return uri, False
    return uri, True


def upload(clients: Clients, examination: Examination, *, timeout_s: float = RECORDED_WITHIN_S) -> Sent:
    """Upload the request into the inbox. Each call starts another run, also for the same content: it has its own UPLOAD_ID.

    Never overwrites a request that the service has not read: waits until the present object of that name is recorded.

    Raises:
        TimedOut: that takes longer than `timeout_s`, in seconds, or others keep uploading under this name.
        google.api_core.exceptions.GoogleAPICallError: the inbox or the ledger cannot be read or written.
    """
    from google.api_core.exceptions import PreconditionFailed

    deadline = time.monotonic() + timeout_s
    bucket, upload_id = clients.storage.bucket(clients.context.inbox_bucket), uuid.uuid4().hex
    sender = _sender_of(clients, examination)
    for _ in range(UPLOADS_MAX):
        present = bucket.get_blob(examination.object_name)
        if present is not None and (present.metadata or {}).get(UPLOAD_ID) == upload_id:
            # uploaded, but the response was lost, and the library's retry was refused
            return _sent_object(present, examination)
        if present is not None and not _is_read(
            clients, _sent_object(present, examination), deadline - time.monotonic()
        ):
            break
        blob = bucket.blob(examination.object_name)
        blob.metadata = {**sender, UPLOAD_ID: upload_id}
        try:
            blob.upload_from_string(
                examination.content, if_generation_match=0 if present is None else present.generation
            )
        except PreconditionFailed:
            continue
        return _sent_object(blob, examination)
    raise TimedOut(
        f"{examination.title} was not sent: the service has not read the previous {examination.object_name} yet, and would "
        f"never read it after another upload of that name. See: trainmaster status {shlex.quote(examination.object_name)}\n"
        "Submit it again later, or rename the file."
    )


def _runs_of(examination: Examination) -> int | None:
    request = examination.request
    return request.runs if request is not None and MATRIX in request.document else None


def _sender_of(clients: Clients, examination: Examination) -> dict[str, str]:
    """The metadata that name the sender, the commit of the folder that is packed or has the request, and what was forced."""
    folder = examination.packed.folder if examination.packed else examination.source.folder
    commit = examination.commit or (read_commit(folder) if folder else None)
    forced = {FORCED_KEY: "; ".join(examination.forced)[:FORCED_MAX_CHARS]} if examination.forced else {}
    return sender_metadata(clients, commit) | forced


def start_run(
    clients: Clients,
    examination: Examination,
    *,
    key: str | None = None,
    timeout_s: float = RECORDED_WITHIN_S,
) -> tuple[Sent, bool]:
    """Send the request and its scripts, and wait for the service: what was sent, and whether its run is recorded.

    Raises:
        RequestRefused: the request is not sound, or the service refuses it.
        ClientRefused: the key has started the run of another request.
        TimedOut: as `upload`.
    """
    if examination.refusal:
        raise RequestRefused(examination.refusal, examination.faults)
    sent = None if key is None else started_with(clients, examination, key)
    if sent is None:
        for packed in examination.archives:
            send_script(clients, packed, examination.terms.team)
        sent = (
            publish(clients, examination, key) if key else upload(clients, examination, timeout_s=timeout_s)
        )
    status = wait_until_recorded(clients, sent, timeout_s=timeout_s)
    if status is not None and (problems := problems_of(status)):
        raise RequestRefused("\n".join(problems))
    if status is not None and key is not None:
        check_same_request(clients, sent, examination)
    return sent, status is not None


def _is_read(clients: Clients, present: Sent, timeout_s: float) -> bool:
    """Whether the service has recorded the object or a later one of its name before the timeout."""

    def read() -> bool:
        status = read_document(clients, present.status_name) or {}
        newest = max(int(status.get(key) or 0) for key in ("generation", "repeated_by"))
        return (newest, status.get("state") != RETRYING) >= (present.generation or 0, True)

    return poll(clients.context, read, bool, timeout_s=timeout_s)


def _sent_object(blob: "Blob", examination: Examination) -> Sent:
    dropped = StoredObject(
        bucket=blob.bucket.name,
        name=blob.name,
        generation=int(blob.generation),
        size_bytes=int(blob.size or 0),
    )
    return Sent(
        run_id=drop_of(dropped, "", blob.time_created, blob.time_created, {}).run_id,
        where=dropped.uri,
        status_name=status_object(blob.name),
        generation=dropped.generation,
        runs=_runs_of(examination),
    )


def started_with(clients: Clients, examination: Examination, key: str) -> Sent | None:
    """The run that this idempotency key has started already, with the same request; None if it has started none.

    Raises:
        ClientRefused: the key has started a run with another request.
    """
    if examination.terms.team is not None:
        present = clients.storage.bucket(clients.context.inbox_bucket).get_blob(
            _object_with(examination, key)
        )
        if present is None:
            return None
        sent = replace(_sent_object(present, examination), is_repeated=True)
        digest = hashlib.md5(examination.content, usedforsecurity=False).digest()
        if present.md5_hash != base64.b64encode(digest).decode():
            raise _other_request(sent, examination)
        return sent
    sent = _sent_with(clients, examination, key)
    status = read_document(clients, sent.status_name) or {}
    if not is_run_id(str(status.get("run_id") or "")):  # rejected runs are included
        return None
    check_same_request(clients, sent, examination)
    return replace(sent, is_repeated=True)


def _object_with(examination: Examination, key: str) -> str:
    """Where the request of a team, whose members publish on no topic, is uploaded under its key."""
    name = f"{run_id_of_message_key(key)}{PurePosixPath(examination.object_name).suffix}"
    return f"{REQUESTS_PREFIX}{in_team(examination.terms.team, name)}"


def _sent_with(clients: Clients, examination: Examination, key: str) -> Sent:
    return Sent(
        run_id=run_id_of_message_key(key),
        where=clients.requests_topic,
        status_name=message_status_object(message_id="", idempotency_key=key),
        runs=_runs_of(examination),
    )


def publish(clients: Clients, examination: Examination, key: str) -> Sent:
    """Publish the request, of which `started_with` found no run: any number of calls with one key start one run.

    A team's is uploaded instead, if nothing with its key is there.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: as `Clients.publish_request`; or another upload was the first.
    """
    sender = _sender_of(clients, examination)
    if examination.terms.team is not None:
        inbox = clients.storage.bucket(clients.context.inbox_bucket)
        blob = inbox.blob(_object_with(examination, key))
        blob.metadata = sender
        blob.upload_from_string(examination.content, if_generation_match=0)
        return _sent_object(blob, examination)
    sent = _sent_with(clients, examination, key)
    clients.publish_request(examination.content, key, sender)
    return sent


def check_same_request(clients: Clients, sent: Sent, examination: Examination) -> None:
    """Compare the request with that of the recorded run.

    Raises:
        ClientRefused: they differ: an earlier or concurrent message with the same key had another request, or an order.
    """
    try:
        run = read_run(clients, sent.run_ids[0])
    except NotFound:  # an order has no record
        run = None
    if run is not None and _is_same_request(clients, run, examination):
        return
    raise _other_request(sent, examination)


def _other_request(sent: Sent, examination: Examination) -> ClientRefused:
    return ClientRefused(
        f"The key of {examination.title} has already started {sent.run_id}, and the request differs. See that "
        f"run: trainmaster status {sent.run_id}\nTo start a run of this request, choose another --key."
    )


def wait_until_recorded(
    clients: Clients, sent: Sent, *, timeout_s: float = RECORDED_WITHIN_S
) -> dict[str, Any] | None:
    """The status of the request once the service has recorded its run, or given it up; None if that takes longer.

    If a later upload of the same name has replaced the status, the run's record, which has `state` and `problems` too.
    """

    def find_status() -> dict[str, Any] | None:
        status = read_document(clients, sent.status_name)
        generation = int((status or {}).get("generation") or 0)
        if generation > (sent.generation or 0):
            return read_document(clients, record_object(sent.run_ids[0]))
        is_own = status is not None and generation == (sent.generation or 0)
        return status if is_own and status is not None and status.get("state") != RETRYING else None

    return poll(clients.context, find_status, bool, timeout_s=timeout_s + LAUNCH_S * (sent.runs or 0))


def problems_of(status: dict[str, Any]) -> list[str]:
    """Why the service rejected the request, or gave it up after many attempts: a line for each fault. Empty if it did not."""
    if status.get("state") not in (RunState.REJECTED, DEAD_LETTER):
        return []
    return [one_line(str(each)) for each in status.get("problems") or [status.get("reason")]]


def _is_same_request(clients: Clients, run: Run, examination: Examination) -> bool:
    """Whether the run's request is the examined one: the same text, or the same canonical document.

    True for a rejected run, which has no request on record.
    """
    request = run.record.request
    if request is None or examination.request is None:
        return True
    if encoded(request.document) == encoded(examination.request.document):
        return True
    submitted = read_json(clients.storage, *split_object_uri(request.original.uri)) or {}
    return submitted.get("text") == examination.content.decode("utf-8", "replace")
