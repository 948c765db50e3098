"""The ladder of a run on record: where it may run, and how."""

from collections.abc import Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.admission.ladder import Rung, ladder_of
from trainmaster.orchestrator.core.names import output_prefix_uri
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import Services


def ladder_for(services: Services, record: RunRecord) -> tuple[Rung, ...]:
    """The rungs of a run on record, which write where the record says: the policy may have changed since.

    The record must be one of an accepted request; of another, errors of any kind.
    """
    document = record.request.document if record.request else {}
    ladder = ladder_of(document, model_name=record.model_name, region=services.target.region)
    if record.output_uri is None:
        return ladder
    prefix = output_prefix_uri(record.output_uri)
    return tuple(replace(rung, spec=replace(rung.spec, output_prefix_uri=prefix)) for rung in ladder)


def regions_of(ladder: Sequence[Rung]) -> tuple[str, ...]:
    """Every region where the run may have been submitted, the first rung's first."""
    return tuple(dict.fromkeys(rung.region for rung in ladder))
