"""The ways to run a request, tried in order: the request itself, then each of its fallbacks laid over it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.orchestrator.core.names import output_prefix_uri
from trainmaster.orchestrator.core.requests.fallbacks import candidate_documents
from trainmaster.orchestrator.core.requests.programs import ROLES
from trainmaster.orchestrator.core.requests.spec import Cluster, JobSpec, Scheduling, WorkerPool, spec_from
from trainmaster.orchestrator.core.runs.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Where, on which machines and on which terms a request may run.

    `number` 0 is the request itself; `text` is for people, one line.
    """

    number: int
    region: str
    spec: JobSpec
    text: str


def candidates_of(record: RunRecord) -> tuple[Candidate, ...]:
    """The candidates of a run on record, which write where the record says: the policy may have changed since.

    Raises:
        ValueError: the run was rejected.
    """
    if record.request is None:
        raise ValueError(f"run {record.run_id} was rejected and has no candidates")
    prefix = output_prefix_uri(record.request.output_uri)
    return tuple(
        replace(each, spec=replace(each.spec, output_prefix_uri=prefix))
        for each in candidates_in(record.request.document)
    )


def candidates_in(document: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The candidates of a canonical document, never empty; those that name no region run in its own."""
    return tuple(
        candidate_of(number, spec_from(each), each.get("region") or document["region"])
        for number, each in enumerate(candidate_documents(document))
    )


def regions_of(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Every region where the run may have been submitted, the first candidate's first."""
    return tuple(dict.fromkeys(each.region for each in candidates))


def candidate_of(number: int, spec: JobSpec, region: str) -> Candidate:
    """The candidate with its text."""
    return Candidate(number=number, region=region, spec=spec, text=_text(spec, region))


def pools_of(cluster: Cluster) -> Iterator[tuple[str, WorkerPool]]:
    """The roles that are there, by the names that requests give them; the chief first."""
    for role, pool in zip(ROLES, cluster.pools, strict=False):
        if pool is not None:
            yield role, pool


def _text(spec: JobSpec, region: str) -> str:
    """`us-central1, n1-standard-8 with 1 NVIDIA_TESLA_T4, 3 workers of n1-standard-4, spot`."""
    return ", ".join([region, *_machines(spec.cluster), *_terms(spec.scheduling)])


def _machines(cluster: Cluster) -> list[str]:
    chief = _machine(cluster.chief)
    texts = [chief]
    for role, pool in list(pools_of(cluster))[1:]:
        machine, plural = _machine(pool), role.replace("_", " ")
        what = plural.removesuffix("s") if pool.replicas == 1 else plural
        texts.append(f"{pool.replicas} {what} of {'the same' if machine == chief else machine}")
    return texts


def _machine(pool: WorkerPool) -> str:
    extra = f" with {pool.accelerator.count} {pool.accelerator.type}" if pool.accelerator else ""
    return f"{pool.machine}{extra}{f' {pool.tpu_topology}' if pool.tpu_topology else ''}"


def _terms(scheduling: Scheduling) -> list[str]:
    return [
        text for text, is_so in (("spot", scheduling.spot), ("flex start", scheduling.flex_start)) if is_so
    ]
