"""Submits the request of an earlier run once more."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from trainmaster.client.errors import ClientRefused
from trainmaster.client.find import Run, again_object
from trainmaster.client.runs.origin import submitted_text
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import deployed_terms

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def request_again(clients: "Clients", run: Run) -> Examination:
    """The run's request as its user wrote it or its rule filled it in, checked as the deployment checks requests now.

    Raises:
        ClientRefused: the run was rejected, its text is gone, or the deployment would refuse it now.
        NotFound: the ledger's document is damaged, or the deployment publishes no policy.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    record = run.record
    text = None if record.request is None else submitted_text(clients, record)
    if text is None:
        raise ClientRefused(
            "The text of this request is not kept. Correct the file, and submit it: trainmaster submit FILE"
        )
    object_name = again_object(record)
    source = RequestSource(file=PurePosixPath(object_name).name, content=text.encode(), folder=None)
    found = examination_of(source, deployed_terms(clients))
    if found.refusal:
        raise ClientRefused(f"The deployment would refuse this request now.\n{found.refusal}")
    return replace(found, object_name=object_name, commit=record.source.commit)
