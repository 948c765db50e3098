"""The ladder of a request: the ways to run it, tried in order, the request as it is written first."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.core.launch.fallbacks import rung_documents
from orchestrator.core.launch.request import dialect_of
from orchestrator.core.launch.spec import Cluster, JobSpec, Scheduling, WorkerPool, spec_from


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One way to run a request. `number` 0 is the request itself; `text` is for people, one line."""

    number: int
    region: str
    spec: JobSpec
    text: str


def ladder_of(document: Mapping[str, Any], *, model_name: str | None, region: str) -> tuple[Rung, ...]:
    """The rungs of a document on record, which was found sound under this name; rung 0 first, never empty.

    `region` is the deployment's own, where rungs that name none run.
    """
    meant = dialect_of(document).in_own(document, model_name)
    home = meant.region or region
    return tuple(
        rung_of(number, spec_from(each), each.get("region") or home)
        for number, each in enumerate(rung_documents(meant.document))
    )


def rung_of(number: int, spec: JobSpec, region: str) -> Rung:
    """The rung with its text."""
    return Rung(number=number, region=region, spec=spec, text=_text(spec, region))


_ROLES = ("chief", "workers", "parameter servers", "evaluators")


def _text(spec: JobSpec, region: str) -> str:
    """`us-central1, n1-standard-8 with 1 NVIDIA_TESLA_T4, 3 workers of n1-standard-4, spot`."""
    return ", ".join([region, *_machines(spec.cluster), *_terms(spec.scheduling)])


def _machines(cluster: Cluster) -> list[str]:
    chief = _machine(cluster.chief)
    texts = [chief]
    for role, pool in zip(_ROLES[1:], cluster.pools[1:], strict=False):
        if pool is not None:
            machine = _machine(pool)
            what = role.removesuffix("s") if pool.replicas == 1 else role
            texts.append(f"{pool.replicas} {what} of {'the same' if machine == chief else machine}")
    return texts


def _machine(pool: WorkerPool) -> str:
    extra = f" with {pool.accelerator.count} {pool.accelerator.type}" if pool.accelerator else ""
    return f"{pool.machine}{extra}{f' {pool.tpu_topology}' if pool.tpu_topology else ''}"


def _terms(scheduling: Scheduling) -> list[str]:
    return [
        text for text, is_so in (("spot", scheduling.spot), ("flex start", scheduling.flex_start)) if is_so
    ]
