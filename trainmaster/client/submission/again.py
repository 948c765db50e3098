"""Submits the request of an earlier run once more, with changes, and continues its training."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused
from trainmaster.client.files.listing import objects_below
from trainmaster.client.find import Run, again_object
from trainmaster.client.runs.facts import is_tuning
from trainmaster.client.runs.origin import submitted_text
from trainmaster.client.submission.edits import NO_EDITS, Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.settings import RequestSetting
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.requests.matrix import run_documents


def request_again(clients: Clients, run: Run, edits: Edits = NO_EDITS) -> Examination:
    """The run's request as its user wrote it or its rule filled it in, checked as the deployment checks requests now.

    Of a request with a matrix, it is the combination of this run.

    Raises:
        ClientRefused: the run was rejected, its text is gone, or the deployment would refuse it now, with these edits.
        NotFound: the ledger's document is damaged, or the deployment publishes no policy.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    record = run.record
    text = None if record.request is None else submitted_text(clients, record)
    if text is None and record.cleaned:
        raise ClientRefused(
            f"The policy's retention has removed the record of {record.run_id}, and its request."
        )
    if text is None:
        raise ClientRefused(
            "The text of this request is not kept. Correct the file, and submit it: trainmaster submit FILE"
        )
    object_name = again_object(record)
    source = RequestSource(file=PurePosixPath(object_name).name, content=text.encode(), folder=None)
    if (group := record.source.group) is not None:  # without the other combinations
        own = run_documents(mapping_at(source.read.value))[group.number - 1]
        source = replace(source, content=source.text_of(own))
    found = examination_of(source, deployed_terms(clients), edits)
    if found.refusal:
        raise ClientRefused(f"The deployment would refuse this request now.\n{found.refusal}")
    return replace(found, object_name=object_name, commit=record.source.commit)


def continuing(clients: Clients, run: Run) -> Sequence[RequestSetting]:
    """The settings with which a new run continues the training of this one, from its checkpoints.

    Raises:
        ClientRefused: it has not ended, tuned parameters, or left no checkpoint.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    record, run_id = run.record, run.record.run_id
    uri = f"{record.output_uri}/checkpoints/"
    if not record.ended:
        raise ClientRefused(
            f"{run_id} has not ended, and still writes checkpoints: trainmaster wait {run_id}"
        )
    if is_tuning(record):
        raise ClientRefused(
            f"{run_id} is a tuning, whose trials have checkpoints each. Submit a run of one trial."
        )
    if {"checkpoints", "models"} & (record.cleaned or {}).keys():
        raise ClientRefused(f"The policy's retention has removed the checkpoints of {run_id}.")
    if record.output_uri is None or not list(islice(objects_below(clients, uri), 1)):
        raise ClientRefused(
            f"{run_id} has left no checkpoint: {uri} holds nothing. The trainer removes its checkpoints when it exports a "
            f"model; to start from that model: trainmaster again {run_id} -- --start_from={run_id} …"
        )
    return [RequestSetting(text="", option="--continue", path=("continue_from",), value=uri)]
