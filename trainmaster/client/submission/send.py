"""Sends a prepared request, and waits until the service has recorded it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.client.errors import TimedOut
from trainmaster.client.find import read_document
from trainmaster.client.rules.orders import PUBLISH_WITHIN_S, REQUESTS_TOPIC
from trainmaster.client.submission.pack import Packed
from trainmaster.client.submission.prepare import Prepared
from trainmaster.client.terminal import one_line
from trainmaster.client.wait import poll
from trainmaster.orchestrator.core.names import (
    message_status_object,
    object_uri,
    script_object,
    status_object,
)
from trainmaster.orchestrator.core.requests.incoming import (
    IDEMPOTENCY_KEY,
    StoredObject,
    drop_of,
    run_id_of_message_key,
)
from trainmaster.orchestrator.core.runs.drop_status import DEAD_LETTER, RETRYING
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

RECORDED_WITHIN_S = 30.0
"""How long the service usually needs at most, its start included."""


@dataclass(frozen=True, kw_only=True)
class Sent:
    """A request that the service has, or will have once its event is delivered.

    Attributes:
        run_id: as the service will name the run.
        where: the URI of the uploaded object, or the name of the topic.
        status_name: where the ledger will have its status.
        generation: of the uploaded object; None for a message.
    """

    run_id: str
    where: str
    status_name: str
    generation: int | None = None


def send_script(clients: "Clients", packed: Packed) -> tuple[str, bool]:
    """The URI of the script's archive in the data bucket, and whether it was uploaded now: it may be there already."""
    from google.api_core.exceptions import PreconditionFailed

    bucket, name = clients.context.data_bucket, script_object(packed.sha256)
    uri = object_uri(bucket, name)
    try:
        clients.storage.bucket(bucket).blob(name).upload_from_string(
            packed.content, content_type="application/gzip", if_generation_match=0
        )
    except PreconditionFailed:
        return uri, False
    return uri, True


def upload(clients: "Clients", prepared: Prepared) -> Sent:
    """Upload the request into the inbox. Each call starts another run."""
    bucket, name = clients.context.inbox_bucket, prepared.object_name
    blob = clients.storage.bucket(bucket).blob(name)
    blob.upload_from_string(prepared.content)
    dropped = StoredObject(
        bucket=bucket, name=name, generation=int(blob.generation), size_bytes=len(prepared.content)
    )
    return Sent(
        run_id=drop_of(dropped, "", blob.time_created, blob.time_created).run_id,
        where=dropped.uri,
        status_name=status_object(name),
        generation=dropped.generation,
    )


def publish(clients: "Clients", prepared: Prepared, key: str) -> Sent:
    """Publish the request with this idempotency key: any number of calls with one key start one run."""
    from google.pubsub_v1.types import PubsubMessage

    topic = f"projects/{clients.context.project}/topics/{REQUESTS_TOPIC}"
    message = PubsubMessage(data=prepared.content, attributes={IDEMPOTENCY_KEY: key})
    clients.pubsub[1].publish(topic=topic, messages=[message], timeout=PUBLISH_WITHIN_S)
    status_name = message_status_object(message_id="", idempotency_key=key)
    return Sent(run_id=run_id_of_message_key(key), where=topic, status_name=status_name)


def recorded(
    clients: "Clients", sent: Sent, *, timeout_s: float = RECORDED_WITHIN_S
) -> dict[str, Any] | None:
    """The status of the request once the service has recorded its run, or given it up; None if that takes longer.

    A later upload of the same name may have replaced the status: then it is the later one's.
    """

    def found() -> dict[str, Any] | None:
        status = read_document(clients, sent.status_name)
        is_known = status is not None and int(status.get("generation") or 0) >= (sent.generation or 0)
        return status if is_known and status is not None and status.get("state") != RETRYING else None

    try:
        return poll(found, is_local=clients.context.state is not None, timeout_s=timeout_s, late=str)
    except TimedOut:
        return None


def is_refused(status: dict[str, Any]) -> bool:
    """Whether the service rejected the request, or could not handle it after many attempts."""
    return status.get("state") in (RunState.REJECTED, DEAD_LETTER)


def problems_of(status: dict[str, Any]) -> list[str]:
    """Why the service refused the request: one line for each fault."""
    return [one_line(str(each)) for each in status.get("problems") or [status.get("reason")]]
