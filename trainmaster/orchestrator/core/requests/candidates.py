"""The candidates of a request: the request itself, then each of its fallbacks laid over it, a whole request again."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path
from trainmaster.orchestrator.core.documents.unvalidated import list_at, mapping_at, text_at
from trainmaster.orchestrator.core.names import output_prefix_uri
from trainmaster.orchestrator.core.requests.draft import ROLES
from trainmaster.orchestrator.core.requests.spec import Cluster, JobSpec, Scheduling, WorkerPool, spec_from
from trainmaster.orchestrator.core.runs.record import RunRecord

FALLBACKS = "fallbacks"
MAX_FALLBACKS = 8
"""As schemas/training_request.v1.schema.json says; no more are checked."""
FALLBACK_KEYS = ("region", "cluster", "scheduling")
_UNMOVED = frozenset(
    {"command", "args", "env", "python_package", "nfs_mounts", "reserved_ip_ranges", "tuning"}
)
_REGIONAL = ("encryption_key", "tensorboard", "experiment")
"""Keys that name a resource of one region, which jobs of another cannot use:
https://cloud.google.com/vertex-ai/docs/general/cmek, …/vertex-ai/docs/experiments/tensorboard-training"""


def candidate_documents(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The documents of the candidates, each without fallbacks: the request itself, then each fallback applied to it."""
    own = without_fallbacks(document)
    return (own, *(merged(own, patch) for _, patch in iter_fallbacks(document)))


def without_fallbacks(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != FALLBACKS}


def placeable(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without what no fallback changes and no region or machine decides: its words, data and parameters.

    A request with thousands of values and eight fallbacks is checked whole only once.
    """
    own = {key: value for key, value in document.items() if key not in (FALLBACKS, *_UNMOVED)}
    cluster = mapping_at(document, "cluster")
    if cluster:
        own["cluster"] = {
            role: {key: value for key, value in pool.items() if key not in _UNMOVED}
            if role in ROLES and isinstance(pool, Mapping)
            else pool
            for role, pool in cluster.items()
        }
    return {**own, "tuning": {}} if "tuning" in document else own


def iter_fallbacks(document: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each fallback that is a mapping, with its place in the list."""
    for index, patch in enumerate(list_at(document, FALLBACKS)[:MAX_FALLBACKS]):
        if isinstance(patch, Mapping):
            yield index, patch


def fallback_path(index: int) -> str:
    return json_path((FALLBACKS, index))


# Any: a JSON document.
def merged(document: object, patch: object) -> Any:
    """The patch laid over the document: null takes a key away, mappings are merged, all else is replaced.

    Source: JSON Merge Patch, https://www.rfc-editor.org/rfc/rfc7396#section-2
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


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


def fallback_faults(document: Mapping[str, Any], home: str) -> list[Fault]:
    """Every fallback that asks for nothing new, for a missing role, or for a region that another key rules out.

    The document is in the project's dialect and may be faulty; `home` is the region of requests that name none. What
    schema and policy report about the merged requests is not repeated here.
    """
    return [*_roles(document), *_repeated(document, home), *_bound(document, home)]


def _roles(document: Mapping[str, Any]) -> Iterator[Fault]:
    there = [role for role in ROLES if role in mapping_at(document, "cluster")]
    for index, patch in iter_fallbacks(document):
        for role in ROLES:
            if role in mapping_at(patch, "cluster") and role not in there:
                yield Fault(
                    at=(FALLBACKS, index, "cluster", role),
                    problem="a fallback may change the request's roles but not add any",
                    value=role,
                    among=there,
                )


def _repeated(document: Mapping[str, Any], home: str) -> Iterator[Fault]:
    own = without_fallbacks(document)
    earlier = [(_asked(own, home), "the request itself")]
    for index, patch in iter_fallbacks(document):
        asked = _asked(merged(own, patch), home)
        same = next((what for known, what in earlier if known == asked), None)
        if not set(FALLBACK_KEYS).issuperset(patch):
            continue  # what it means to change is under a key that is wrong
        if same is not None:
            yield Fault(
                path=fallback_path(index),
                problem=f"it requests the same resources as {same}, so trying it would gain nothing",
                value=patch,
                repair="remove it, or change its region, machine, accelerator or scheduling",
            )
        earlier.append((asked, f"fallbacks[{index}]"))


def _asked(document: object, home: str) -> object:
    """What decides where and on what the job runs; what is false is as good as left out."""
    scheduling = {
        key: value for key, value in mapping_at(document, "scheduling").items() if value is not False
    }
    return text_at(document, "region") or home, mapping_at(document, "cluster"), scheduling


def _bound(document: Mapping[str, Any], home: str) -> Iterator[Fault]:
    own = text_at(document, "region") or home
    for number, candidate in enumerate(candidate_documents(document)):
        region = text_at(candidate, "region") or home
        if number > 0 and region == own:
            continue
        for key in _REGIONAL:
            where = _location(text_at(candidate, key))
            # Where the region stands; the key, of a request that leaves its region out.
            of_request = ("region",) if "region" in document else (key,)
            if where is not None and where != region:
                yield Fault(
                    at=(FALLBACKS, number - 1, "region") if number > 0 else of_request,
                    problem=f"the request's {key} belongs to {where}, and jobs in another region cannot use it",
                    value=region,
                    allowed=where,
                    repair=f"remove {key}, or run it in {where}",
                )


def _location(name: str | None) -> str | None:
    parts = (name or "").split("/")
    return parts[3] if len(parts) > 4 and parts[2] == "locations" else None  # noqa: PLR2004 - projects/P/locations/L/…
