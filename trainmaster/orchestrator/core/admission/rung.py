"""One way to run a request: where, on which machines, on which terms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.orchestrator.core.requests.fallbacks import rung_documents
from trainmaster.orchestrator.core.requests.programs import ROLES
from trainmaster.orchestrator.core.requests.spec import Cluster, JobSpec, Scheduling, WorkerPool, spec_from


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One way to run a request. `number` 0 is the request itself; `text` is for people, one line."""

    number: int
    region: str
    spec: JobSpec
    text: str


def rungs_of(document: Mapping[str, Any]) -> tuple[Rung, ...]:
    """The rungs of a canonical document, rung 0 first, never empty; those that name no region run in its own."""
    return tuple(
        rung_of(number, spec_from(each), each.get("region") or document["region"])
        for number, each in enumerate(rung_documents(document))
    )


def rung_of(number: int, spec: JobSpec, region: str) -> Rung:
    """The rung with its text."""
    return Rung(number=number, region=region, spec=spec, text=_text(spec, region))


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
