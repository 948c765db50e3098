"""What runs wait for together: a candidate's quotas, a request rate, or a right that the deployment lacks."""

import hashlib
import re

from trainmaster.orchestrator.core.admission.candidates import Candidate, pools_of
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.spec import WorkerPool

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


def is_rate_limit(code: int, reason: str) -> bool:
    """Whether a refusal with this HTTP status and text asks for fewer requests rather than other machines."""
    return code == TOO_MANY_REQUESTS and _RATE.search(reason) is not None


def quota_class(candidate: Candidate) -> str:
    """For example `us-central1_nvidia_tesla_t4_spot`; runs of different classes do not wait for each other.

    Quotas for custom training are counted by region and by accelerator, or by machine family without one; Spot VMs
    count separately. The class of a cluster with several kinds of accelerators names them all. The result is a valid
    label value: lower case, at most CLASS_MAX_CHARS.
    Source: https://cloud.google.com/vertex-ai/docs/quotas#custom-trained_model_quotas
    """
    pools = [pool for _, pool in pools_of(candidate.spec.cluster)]
    kinds = sorted({pool.accelerator.type.lower() for pool in pools if pool.accelerator})
    kinds = kinds or sorted({f"{_family(pool)}_tpu" for pool in pools if _has_tpus(pool)})
    kinds = kinds or sorted({f"{_family(pool)}_cpu" for pool in pools})
    terms = [
        term
        for term, is_so in (
            ("spot", candidate.spec.scheduling.spot),
            ("flex", candidate.spec.scheduling.flex_start),
        )
        if is_so
    ]
    return _short("_".join([candidate.region, *kinds, *terms]))


def deployment_class(region: str, kind: JobKind) -> str:
    """The class of all runs with such jobs, whatever machines they need, while Vertex AI refuses the deployment itself."""
    return f"deployment_{region}_{kind}"


def _family(pool: WorkerPool) -> str:
    return pool.machine.partition("-")[0]


def _has_tpus(pool: WorkerPool) -> bool:
    return pool.tpu_topology is not None or pool.machine.startswith(_TPU_MACHINES)


def _short(text: str) -> str:
    if len(text) <= CLASS_MAX_CHARS:
        return text
    return f"{text[: CLASS_MAX_CHARS - 1 - _HASH_CHARS]}_{hashlib.sha256(text.encode()).hexdigest()[:_HASH_CHARS]}"
