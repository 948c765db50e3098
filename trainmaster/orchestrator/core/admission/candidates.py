"""The candidates of a run: where, on which machines and on which terms it may be submitted, in order.

Runs wait together for a candidate's quotas, a request rate, or a right that the deployment lacks.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import output_prefix_uri
from trainmaster.orchestrator.core.requests.draft import ROLES, candidate_documents
from trainmaster.orchestrator.core.requests.spec import Cluster, JobSpec, Scheduling, WorkerPool, spec_from
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, RunRecord

CLASS_MAX_CHARS = 63
_HASH_CHARS = 10
_TPU_MACHINES = ("cloud-tpu", "ct", "tpu")
"""How the names of machines with TPUs begin: https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpus"""
TOO_MANY_REQUESTS = 429
_RATE = re.compile(r"requests per minute|RATE_LIMIT|_requests\b", re.IGNORECASE)
"""How the service names request quotas; those of resources are named after machines, accelerators or jobs.

Source: https://cloud.google.com/vertex-ai/docs/quotas#request_quotas and
https://cloud.google.com/service-infrastructure/docs/service-control/reference/rest/v1/services/allocateQuota
"""


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
        on = [f"on {self.spec.persistent_resource}"] if self.spec.persistent_resource else []
        return ", ".join([*_machines(self.spec.cluster), *_terms(self.spec.scheduling), *on])

    @property
    def replicas(self) -> int:
        return sum(pool.replicas for _, pool in pools_of(self.spec.cluster))


def candidates_of(record: RunRecord) -> tuple[Candidate, ...]:
    """The candidates of a run on record, which write where the record says: the policy may have changed since.

    A machine on which a job of the run ran out of memory is replaced by the one that the record names.

    Raises:
        ValueError: the run was rejected.
    """
    if record.request is None:
        raise ValueError(f"run {record.run_id} was rejected, so it has no candidates")
    return _candidates_of(record.request, tuple((record.submission.machines or {}).items()))


@lru_cache(maxsize=64)  # every step of a run needs them
def _candidates_of(request: AcceptedRequest, larger: Sequence[tuple[str, str]]) -> tuple[Candidate, ...]:
    prefix, others = output_prefix_uri(request.output_uri), dict(larger)
    return tuple(
        replace(candidate, spec=with_machines(replace(candidate.spec, output_prefix_uri=prefix), others))
        for candidate in parse_candidates(request.document, request.pools or ())
    )


def with_machines(spec: JobSpec, others: Mapping[str, str]) -> JobSpec:
    """The spec with other machine types in place of these."""
    if not others:
        return spec
    pools: dict[str, Any] = {  # Any: the roles are names of fields
        role: replace(pool, machine=others.get(pool.machine, pool.machine))
        for role, pool in pools_of(spec.cluster)
    }
    return replace(spec, cluster=replace(spec.cluster, **pools))


def current_candidate(record: RunRecord) -> Candidate:
    """The candidate of a run on record that was submitted last, or that is submitted next.

    Raises:
        ValueError: the run was rejected.
    """
    candidates = candidates_of(record)
    return candidates[min(record.submission.candidate, len(candidates) - 1)]


def parse_candidates(document: Mapping[str, Any], pools: Sequence[str] = ()) -> tuple[Candidate, ...]:
    """The candidates of a canonical document, never empty; those that name no region run in its own.

    On each of `pools`, the ids of persistent resources, the request itself is tried first.
    """
    own, *fallbacks = candidate_documents(document)
    on_pools = ({**own, "persistent_resource": pool} for pool in pools)
    found = (
        (one.get("region") or document["region"], spec_from(one)) for one in (*on_pools, own, *fallbacks)
    )
    return tuple(Candidate(number=n, region=region, spec=spec) for n, (region, spec) in enumerate(found))


def regions_of(candidates: Sequence[Candidate]) -> tuple[str, ...]:
    """Every region where the run may have been submitted, the first candidate's first."""
    return tuple(dict.fromkeys(candidate.region for candidate in candidates))


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
    return ["spot"] * scheduling.spot + ["flex start"] * scheduling.flex_start


def is_rate_limit(code: int, reason: str) -> bool:
    """Whether a refusal with this HTTP status and text asks for fewer requests rather than other machines."""
    return code == TOO_MANY_REQUESTS and _RATE.search(reason) is not None


def quota_class(candidate: Candidate) -> str:
    """For example `us-central1_nvidia_tesla_t4_spot`; runs of different classes do not wait for each other.

    Quotas for custom training are counted by region and by accelerator, or by machine family without one; Spot VMs
    count separately, and jobs on a persistent resource use none. The class of a cluster with several kinds of
    accelerators names them all. The result is a valid label value: lower case, at most CLASS_MAX_CHARS.
    Source: https://cloud.google.com/vertex-ai/docs/quotas#custom-trained_model_quotas
    """
    if candidate.spec.persistent_resource:
        return _class_name(f"{candidate.region}_pool_{candidate.spec.persistent_resource}")
    pools = [pool for _, pool in pools_of(candidate.spec.cluster)]
    kinds = sorted({pool.accelerator.type.lower() for pool in pools if pool.accelerator})
    tpus = [pool for pool in pools if pool.tpu_topology or pool.machine.startswith(_TPU_MACHINES)]
    kinds = kinds or sorted({f"{_family(pool)}_tpu" for pool in tpus})
    kinds = kinds or sorted({f"{_family(pool)}_cpu" for pool in pools})
    terms = [term.removesuffix(" start") for term in _terms(candidate.spec.scheduling)]
    return _class_name("_".join([candidate.region, *kinds, *terms]))


def _class_name(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]
    return text if len(text) <= CLASS_MAX_CHARS else f"{text[: CLASS_MAX_CHARS - 1 - _HASH_CHARS]}_{digest}"


def deployment_class(region: str, kind: JobKind) -> str:
    """The class of all runs with such jobs, whatever machines they need, while Vertex AI refuses the deployment itself."""
    return f"deployment_{region}_{kind}"


def _family(pool: WorkerPool) -> str:
    return pool.machine.partition("-")[0]
