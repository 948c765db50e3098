"""Orders to fire a rule, roll back a champion or end a run: published like requests, and followed to their outcome."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, TimedOut
from trainmaster.client.find import Run, base_of, names_of_file, read_document, read_run
from trainmaster.client.runs.admission_objects import active_runs
from trainmaster.client.submission.sender import sender_metadata
from trainmaster.client.terminal import one_line
from trainmaster.client.wait import poll
from trainmaster.orchestrator.core.names import REQUESTS_PREFIX, message_status_object, status_object
from trainmaster.orchestrator.core.requests.incoming import run_id_of_message_key
from trainmaster.orchestrator.core.runs.drop_status import DEAD_LETTER, HELD
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

WAIT_S = 120.0


def give_order(
    clients: Clients, order: Mapping[str, Any], *, team: str | None, timeout_s: float
) -> tuple[str, dict[str, Any]]:
    """Publish an order, and return its id and its status once it is carried out or held. A team's is dropped as a file.

    Each call is a new order, with a separate key, so that a publication that is repeated after a lost response
    is carried out once.

    Args:
        clients: of the context that carries it out.
        order: as in schemas/order.v1.schema.json.
        team: whose run, rule or champion it is about; None in a deployment without teams.
        timeout_s: how long to wait for the outcome. The order stays given after that.

    Raises:
        ClientRefused: the service refuses the order, or gave it up after many failures.
        TimedOut: it is not carried out yet; the message has the key.
        google.api_core.exceptions.GoogleAPICallError: it cannot be published, or its status cannot be read.
    """
    key = f"order-{uuid.uuid4().hex}"
    content = json.dumps(order).encode()
    file = f"{REQUESTS_PREFIX}{team}/{key}.json"
    name = status_object(file)
    if team is None:
        clients.publish_request(content, key, sender_metadata(clients))
        name = message_status_object(message_id="", idempotency_key=key)
    else:  # members of a team may write into its folders, and publish on no topic
        blob = clients.storage.bucket(clients.context.inbox_bucket).blob(file)
        blob.metadata = sender_metadata(clients)
        blob.upload_from_string(content, if_generation_match=0)
    final = poll(
        clients.context,
        lambda: read_document(clients, name) or {},
        lambda status: status.get("state") in _FINAL,
        timeout_s=timeout_s,
    )
    if final.get("state") not in _FINAL:
        why = one_line(str(final.get("reason") or "the service has not answered"))
        raise TimedOut(
            f"The order is not carried out after {timeout_s:g} s: {why}. See: trainmaster status {key if team is None else file}"
        )
    if final["state"] in (RunState.REJECTED, DEAD_LETTER):
        raise ClientRefused("\n".join(map(one_line, final.get("problems") or [str(final.get("reason"))])))
    return str(final["run_id"]) if team is not None else run_id_of_message_key(key), final


def cancel_run(
    clients: Clients, record: RunRecord, order_id: str | None = None, *, timeout_s: float = WAIT_S
) -> None:
    """Order the end of a run, and wait until the order is carried out; the run itself may take longer to end.

    With the id of its group as `order_id`, the order is for all runs of it.

    Raises:
        ClientRefused, TimedOut, google.api_core.exceptions.GoogleAPICallError: as `give_order`.
    """
    order = {"cancel": {"run": order_id or record.run_id}}
    give_order(clients, order, team=record.source.team, timeout_s=timeout_s)


def active_runs_of_file(clients: Clients, run: Run) -> list[Run]:
    """The runs that the file of `run`, or `trainmaster again` of it, started and that have not ended, by their ids.

    Others may have uploaded a file of the same name, so there may be several. Costs the listing of `active_runs`, and
    one read for each active run of a file with this name.

    Raises:
        NotFound: one of their records is gone.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    names = names_of_file(run.record)
    named = [each for each in active_runs(clients) if base_of(each) == base_of(run.record.run_id)]
    found = [read_run(clients, run_id) for run_id in named]
    return [each for each in found if not each.record.ended and each.record.source.object_name in names]


_FINAL = (RunState.SUCCEEDED, HELD, RunState.REJECTED, DEAD_LETTER)
