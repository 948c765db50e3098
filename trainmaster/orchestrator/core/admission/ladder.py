"""The ladder of a run: the ways to run its request, tried in order, the request itself first."""

from collections.abc import Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.admission.rung import Rung, rungs_of
from trainmaster.orchestrator.core.names import output_prefix_uri
from trainmaster.orchestrator.core.runs.record import RunRecord

__all__ = ["Rung", "ladder_of", "regions_of"]


def ladder_of(record: RunRecord) -> tuple[Rung, ...]:
    """The rungs of a run on record, which write where the record says: the policy may have changed since.

    Raises:
        ValueError: the run was rejected.
    """
    if record.request is None:
        raise ValueError(f"run {record.run_id} was rejected and has no ladder")
    prefix = output_prefix_uri(record.request.output_uri)
    rungs = rungs_of(record.request.document)
    return tuple(replace(rung, spec=replace(rung.spec, output_prefix_uri=prefix)) for rung in rungs)


def regions_of(ladder: Sequence[Rung]) -> tuple[str, ...]:
    """Every region where the run may have been submitted, the first rung's first."""
    return tuple(dict.fromkeys(rung.region for rung in ladder))
