"""Faults of roles that make no sense together, beyond what a schema can say, and warnings about them.

Sources: https://cloud.google.com/vertex-ai/docs/training/distributed-training for what a cluster can be,
https://cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws for machines of flexible start.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, listed, shown
from trainmaster.orchestrator.core.documents.values import is_true, mapping_at, text_at, whole_at
from trainmaster.orchestrator.core.policy.policy import glob_matches, repository
from trainmaster.orchestrator.core.requests.checks.programs import program_faults, strategy_faults
from trainmaster.orchestrator.core.requests.disks import DISK_TYPES, boot_disks
from trainmaster.orchestrator.core.requests.draft import (
    FALLBACK_KEYS,
    FALLBACKS,
    ROLES,
    Draft,
    candidate_documents,
    fallback_path,
    iter_fallbacks,
    with_patch,
    without_fallbacks,
)

FLEX_START_ACCELERATORS = (
    "NVIDIA_L4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
)
"""L4, A100, H100, H200 and B200, by the service's names."""
_MACHINE = ("machine", "accelerator", "tpu_topology")


def flex_start_faults(draft: Draft) -> Iterator[Fault]:
    """Pools that cannot be waited for."""
    if not is_true(draft.scheduling, "flex_start"):
        return
    chief = draft.roles.get("chief", {})
    for role, pool in draft.roles.items():
        accelerator = text_at(pool, "accelerator", "type")
        if "machine" in pool and accelerator not in FLEX_START_ACCELERATORS:
            yield Fault(
                at=("cluster", role, *(("accelerator", "type") if accelerator else ("machine",))),
                problem="flex_start works only with these GPUs",
                value=accelerator or pool["machine"],
                among=FLEX_START_ACCELERATORS,
                repair="use such a machine, or remove flex_start",
            )
            continue
        for key in _MACHINE:
            if pool.get(key) != chief.get(key):
                yield Fault(
                    at=("cluster", role, key),
                    problem="flex_start requires the same machine and accelerator for every role",
                    value=pool.get(key),
                    allowed=f"the chief's, {shown(chief.get(key))}",
                )


REDUCTION_SERVER = "*-docker.pkg.dev/vertex-ai-restricted/training/reductionserver"
"""Google's image that adds up gradients in worker pool 2, for workers that train with NCCL.

Source: https://cloud.google.com/vertex-ai/docs/training/distributed-training#reduce_training_time_with_reduction_server
"""
CHECKPOINT_DIR = "AIP_CHECKPOINT_DIR"
"""The variable that tells every replica where checkpoints lie; the service sets it, below the run's directory."""
_REGIONAL = (
    ("encryption_key",),
    ("tensorboard",),
    ("experiment",),
    ("psc_interface_config", "network_attachment"),
)
"""Keys that name a resource of one region, which jobs of another cannot use:
https://cloud.google.com/vertex-ai/docs/general/cmek, …/vertex-ai/docs/experiments/tensorboard-training"""


def cluster_faults(draft: Draft) -> list[Fault]:
    """Every fault of the cluster and of how it is run, sorted by path."""
    reduces = is_reduction_server(draft.running["parameter_servers"].image)
    return sorted(
        [
            *_chief(draft),
            *_parameter_servers(draft, reduces=reduces),
            *_reduction_servers(draft),
            *_evaluators(draft),
            *_tpus(draft),
            *_disks(draft),
            *_reserved_machines(draft),
            *program_faults(draft),
            *flex_start_faults(draft),
            *strategy_faults(draft, reduces=reduces),
        ]
    )


def cluster_warnings(draft: Draft) -> list[Fault]:
    """What the user of a sound request should know of its cluster, sorted by path."""
    return sorted([*_unverified_machines(draft), *_lonely_after_preemption(draft), *_repeated_trials(draft)])


def is_reduction_server(image: str | None) -> bool:
    return image is not None and glob_matches(REDUCTION_SERVER, repository(image))


def _chief(draft: Draft) -> Iterator[Fault]:
    chief, here = draft.cluster.get("chief"), ("cluster", "chief")
    problem = "a job has exactly one chief"
    if isinstance(chief, list):
        repair = "write it as a mapping, without '- '"
        if len(chief) > 1:
            repair = f"keep one and make the others workers, with count: {len(chief) - 1}"
        yield Fault(at=here, problem=problem, found=f"a list of {len(chief)}", repair=repair)
    count = whole_at(chief, "count")
    if count is not None and count != 1:
        repair = f"make the others workers, with count: {count - 1}" if count > 1 else "remove it"
        yield Fault(at=(*here, "count"), problem=problem, value=count, repair=repair)


def _parameter_servers(draft: Draft, *, reduces: bool) -> Iterator[Fault]:
    if "parameter_servers" not in draft.cluster or "workers" in draft.cluster:
        return
    alone = "serve workers; on its own, the chief only coordinates"
    does = "add up the gradients of workers" if reduces else alone
    yield Fault(
        at=("cluster", "parameter_servers"),
        problem=f"no strategy uses them without workers; they {does}",
        value=draft.roles.get("parameter_servers", {}).get("count") or "parameter_servers",
        repair="add workers, or leave parameter_servers out",
    )


def _reduction_servers(draft: Draft) -> Iterator[Fault]:
    for path, image in draft.images.items():
        if is_reduction_server(image) and path[:2] != ("cluster", "parameter_servers"):
            yield Fault(
                at=path,
                problem="this image does not train; it is a reduction server, which adds up the workers' gradients",
                value=image,
                allowed="the image of parameter_servers, in worker pool 2",
                repair="name it there, and the training program here",
            )


def _evaluators(draft: Draft) -> Iterator[Fault]:
    """An evaluator reads the chief's checkpoints in the directory that the service sets; moving either one parts them."""
    trials = ", shared by all trials" if "tuning" in draft.document else ""
    for role in ("chief", "evaluators") if "evaluators" in draft.cluster else ():
        path, value = draft.running[role].env.get(CHECKPOINT_DIR, (None, None))
        if path is not None:
            yield Fault(
                at=path,
                problem="evaluators would not see the checkpoints: "
                f"they watch the run's checkpoint directory, which this replaces for {role}{trials}",
                value=value,
                allowed=f"no {CHECKPOINT_DIR}: it is set for every replica",
                repair="remove it; output.prefix_uri sets where the run writes",
            )


def _tpus(draft: Draft) -> Iterator[Fault]:
    """TPUs where they cannot be.

    Source: https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpus and
    https://cloud.google.com/vertex-ai/docs/training/hyperparameter-tuning-overview
    """
    others = [role for role in draft.roles if role != "chief"]
    for role in (role for role, row in draft.machines.items() if row.has_tpus):
        path, machine = ("cluster", role, "machine"), draft.roles[role]["machine"]
        if "tuning" in draft.document:
            problem = "the trials of a tuning cannot use TPUs"
            repair = "use a machine with GPUs, or remove the tuning"
            yield Fault(at=path, problem=problem, value=machine, repair=repair)
        elif others:
            yield Fault(
                at=path,
                problem="TPU machines train alone: only a chief, no other roles",
                found=shown(machine) + (f" beside {listed(others)}" if role == "chief" else ""),
                repair="remove the other roles, and give the chief a larger tpu_topology or accelerator.count",
            )


def _disks(draft: Draft) -> Iterator[Fault]:
    """Boot disks of a type that the machine lacks."""
    for role, pool in draft.roles.items():
        machine, disk_type = text_at(pool, "machine"), text_at(pool, "disk", "type")
        if machine is None or disk_type not in DISK_TYPES or disk_type in (types := boot_disks(machine)):
            continue
        yield Fault(
            at=("cluster", role, "disk", "type"),
            problem=f"{machine} cannot boot from this type of disk",
            value=disk_type,
            allowed=listed(types),
            repair="leave type out, and the service chooses one",
        )


def _reserved_machines(draft: Draft) -> Iterator[Fault]:
    """Reservations of a job that cannot use them.

    Sources: https://cloud.google.com/compute/docs/instances/reservations-consume (Limitations) for Spot VMs, and
    https://cloud.google.com/vertex-ai/docs/training/use-reservations for flexible start and persistent resources.
    """
    unfit = [key for key in ("spot", "flex_start") if is_true(draft.scheduling, key)]
    unfit += ["persistent_resource"] if "persistent_resource" in draft.document else []
    for role, pool in draft.roles.items():
        if (
            unfit
            and text_at(pool, "reservation_affinity", "reservation_affinity_type") == "SPECIFIC_RESERVATION"
        ):
            yield Fault(
                at=("cluster", role, "reservation_affinity", "reservation_affinity_type"),
                problem=f"a job with {listed(unfit)} cannot use reserved machines",
                value="SPECIFIC_RESERVATION",
                allowed="NO_RESERVATION",
                repair=f"remove reservation_affinity, or {listed(unfit)}",
            )


def _unverified_machines(draft: Draft) -> Iterator[Fault]:
    for role, row in draft.machines.items():
        if row.unverified:
            path, machine = ("cluster", role, "machine"), draft.roles[role]["machine"]
            yield Fault(at=path, problem=f"not verified: {row.unverified}", value=machine)


def _lonely_after_preemption(draft: Draft) -> Iterator[Fault]:
    scheduling = draft.scheduling
    in_step = "workers" in draft.cluster and "parameter_servers" not in draft.cluster
    all_or_none = is_true(scheduling, "restart_on_worker_restart") or is_true(scheduling, "disable_retries")
    if in_step and is_true(scheduling, "spot") and not all_or_none:
        yield Fault(
            at=("scheduling", "spot"),
            problem="a preempted replica restarts alone, and replicas that train synchronously cannot readmit it",
            value=True,
            repair="write restart_on_worker_restart: true, unless the program can readmit replicas",
        )


def _repeated_trials(draft: Draft) -> Iterator[Fault]:
    retries = whole_at(draft.scheduling, "retries")
    if retries and draft.tuning:
        yield Fault(
            at=("scheduling", "retries"),
            problem="a tuning's next job repeats its finished trials: Vertex AI continues no study in another job",
            value=retries,
        )


def fallback_faults(document: Mapping[str, Any], home: str) -> list[Fault]:
    """Every fallback that asks for nothing new, for a missing role, or for a region that another key rules out.

    The document is in the project's dialect and may be faulty; `home` is the region of requests that name none. What
    schema and policy report about the merged requests is not repeated here.
    """
    resources = (*_repeated_resources(document, home), *_regional_resources(document, home))
    return [*_unknown_roles(document), *resources]


def _unknown_roles(document: Mapping[str, Any]) -> Iterator[Fault]:
    there = [role for role in ROLES if role in mapping_at(document, "cluster")]
    problem = "a fallback may change the request's roles but not add any"
    for index, patch in iter_fallbacks(document):
        for role in ROLES:
            if role in mapping_at(patch, "cluster") and role not in there:
                at = (FALLBACKS, index, "cluster", role)
                yield Fault(at=at, problem=problem, value=role, among=there)


def _repeated_resources(document: Mapping[str, Any], home: str) -> Iterator[Fault]:
    own = without_fallbacks(document)
    earlier = [(_resources(own, home), "the request itself")]
    for index, patch in iter_fallbacks(document):
        resources = _resources(with_patch(own, patch), home)
        same = next((what for known, what in earlier if known == resources), None)
        if not set(FALLBACK_KEYS).issuperset(patch):
            continue  # what it means to change is under a key that is wrong
        if same is not None:
            yield Fault(
                path=fallback_path(index),
                problem=f"it requests the same resources as {same}, so trying it would gain nothing",
                value=patch,
                repair="remove it, or change its region, machine, accelerator or scheduling",
            )
        earlier.append((resources, f"fallbacks[{index}]"))


def _resources(document: object, home: str) -> object:
    """What decides where and on what the job runs; what is false is as good as left out."""
    asked = {**mapping_at(document, "scheduling"), "start_within_s": False}
    scheduling = {key: value for key, value in asked.items() if value is not False}
    return text_at(document, "region") or home, mapping_at(document, "cluster"), scheduling


def _regional_resources(document: Mapping[str, Any], home: str) -> Iterator[Fault]:
    own = text_at(document, "region") or home
    for number, candidate in enumerate(candidate_documents(document)):
        region = text_at(candidate, "region") or home
        if number > 0 and region == own:
            continue
        for path in _REGIONAL:
            where, key = _location_of(text_at(candidate, *path)), path[-1]
            # Where the region stands; the key, of a request that leaves its region out.
            of_request = ("region",) if "region" in document else path
            if where is not None and where != region:
                yield Fault(
                    at=(FALLBACKS, number - 1, "region") if number > 0 else of_request,
                    problem=f"the request's {key} belongs to {where}, and jobs in another region cannot use it",
                    value=region,
                    allowed=where,
                    repair=f"remove {key}, or run it in {where}",
                )


def _location_of(name: str | None) -> str | None:
    parts = (name or "").split("/")
    is_regional = len(parts) > 4 and parts[2] in ("locations", "regions")  # noqa: PLR2004 - projects/P/locations/L/…
    return parts[3] if is_regional else None
