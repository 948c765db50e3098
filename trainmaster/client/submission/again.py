"""Submits the request of an earlier run once more."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trainmaster.client.errors import Refused
from trainmaster.client.find import Run, again_object
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.prepare import Prepared, prepare
from trainmaster.client.submission.request_text import read_original_text
from trainmaster.client.submission.rules import deployed_rules
from trainmaster.orchestrator.core.documents.placing import rendered

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def prepare_again(clients: "Clients", run: Run) -> Prepared:
    """The run's request as its user wrote it or its rule filled it in, checked as the deployment checks requests now.

    Raises:
        Refused: the run was rejected, its text is gone, or the deployment would refuse it now.
        NotFound: the ledger's document is damaged.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    record = run.record
    text = read_original_text(clients, run)
    if record.request is None or text is None:
        raise Refused(
            "The text of this request is not kept. Correct the file, and submit it: trainmaster submit FILE"
        )
    object_name = again_object(record)
    file = PurePosixPath(object_name).name
    rules, prices = deployed_rules(clients)
    prepared = prepare(file, text.encode(), Edits(), context=clients.context, rules=rules, prices=prices)
    if prepared.faults:
        faults = "\n".join(line for fault in prepared.faults for line in rendered(fault, file))
        raise Refused(f"The deployment would refuse this request now.\n{faults}")
    return replace(prepared, object_name=object_name)
