"""The candidates of a run: where, on which machines and on which terms it may be submitted, in order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.orchestrator.core.names import output_prefix_uri
from trainmaster.orchestrator.core.requests.draft import ROLES, candidate_documents
from trainmaster.orchestrator.core.requests.spec import Cluster, JobSpec, Scheduling, WorkerPool, spec_from
from trainmaster.orchestrator.core.runs.indexing import IndexedJob
from trainmaster.orchestrator.core.runs.record import RunRecord


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Where, on which machines and on which terms a request may run. `number` 0 is the request itself."""

    number: int
    region: str
    spec: JobSpec

    @property
    def text(self) -> str:
        """`us-central1, n1-standard-8 with 1 NVIDIA_TESLA_T4, 3 workers of n1-standard-4, spot`, for people."""
        return f"{self.region}, {self.machines}"

    @property
    def machines(self) -> str:
        """The same without the region."""
        return ", ".join([*_machines(self.spec.cluster), *_terms(self.spec.scheduling)])


def candidates_of(record: RunRecord) -> tuple[Candidate, ...]:
    """The candidates of a run on record, which write where the record says: the policy may have changed since.

    Raises:
        ValueError: the run was rejected.
    """
    if record.request is None:
        raise ValueError(f"run {record.run_id} was rejected, so it has no candidates")
    prefix = output_prefix_uri(record.request.output_uri)
    return tuple(
        replace(each, spec=replace(each.spec, output_prefix_uri=prefix))
        for each in parse_candidates(record.request.document)
    )


def current_candidate(record: RunRecord) -> Candidate:
    """The candidate of a run on record that was submitted last, or that is submitted next.

    Raises:
        ValueError: the run was rejected.
    """
    candidates = candidates_of(record)
    return candidates[min(record.submission.candidate, len(candidates) - 1)]


def parse_candidates(document: Mapping[str, Any]) -> tuple[Candidate, ...]:
    """The candidates of a canonical document, never empty; those that name no region run in its own."""
    return tuple(
        Candidate(number=number, region=each.get("region") or document["region"], spec=spec_from(each))
        for number, each in enumerate(candidate_documents(document))
    )


def regions_of(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Every region where the run may have been submitted, the first candidate's first."""
    return tuple(dict.fromkeys(each.region for each in candidates))


def pools_of(cluster: Cluster) -> Iterator[tuple[str, WorkerPool]]:
    """The roles that are there, by the names that requests give them; the chief first."""
    for role, pool in zip(ROLES, cluster.pools, strict=False):
        if pool is not None:
            yield role, pool


def _machines(cluster: Cluster) -> list[str]:
    chief = _machine(cluster.chief)
    texts = [chief]
    for role, pool in list(pools_of(cluster))[1:]:
        machine, plural = _machine(pool), role.replace("_", " ")
        what = plural.removesuffix("s") if pool.replicas == 1 else plural
        texts.append(f"{pool.replicas} {what} of {'the same type' if machine == chief else machine}")
    return texts


def _machine(pool: WorkerPool) -> str:
    extra = f" with {pool.accelerator.count} {pool.accelerator.type}" if pool.accelerator else ""
    return f"{pool.machine}{extra}{f' {pool.tpu_topology}' if pool.tpu_topology else ''}"


def _terms(scheduling: Scheduling) -> list[str]:
    return [
        text for text, is_so in (("spot", scheduling.spot), ("flex start", scheduling.flex_start)) if is_so
    ]


def indexed_job(record: RunRecord) -> IndexedJob | None:
    """What the index shows of the run's current candidate; None for a rejected run."""
    if record.request is None:
        return None
    candidate = current_candidate(record)
    spec = candidate.spec
    return IndexedJob(
        kind=spec.kind,
        region=candidate.region,
        machines=candidate.machines,
        priority=spec.priority,
        labels=spec.labels,
    )
