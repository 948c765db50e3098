"""Where the roles of a request make no sense together, beyond what a schema can say, and what is worth a warning.

Checks read the raw document and pass over what has the wrong type: the schema reports that, in the
same report. Source of what a cluster can be: https://cloud.google.com/vertex-ai/docs/training/distributed-training
"""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, json_path, listed, shown
from trainmaster.orchestrator.core.documents.unvalidated import (
    Path,
    at,
    is_true,
    mapping_at,
    text_at,
    whole_at,
)
from trainmaster.orchestrator.core.policy.policy import Machines, Policy, matches, repository
from trainmaster.orchestrator.core.requests.checks.programs import program_faults
from trainmaster.orchestrator.core.requests.checks.scheduling import scheduling_faults
from trainmaster.orchestrator.core.requests.checks.strategy import strategy_faults
from trainmaster.orchestrator.core.requests.programs import images_in, roles_in, running

REDUCTION_SERVER = "*-docker.pkg.dev/vertex-ai-restricted/training/reductionserver"
"""Google's image that adds up gradients in worker pool 2, for workers that train with NCCL.

Source: https://cloud.google.com/vertex-ai/docs/training/distributed-training#reduce_training_time_with_reduction_server
"""
CHECKPOINT_DIR = "AIP_CHECKPOINT_DIR"
"""The variable that tells every replica where checkpoints lie; the service sets it, below the run's directory."""


def role_faults(policy: Policy | None, document: object) -> list[Fault]:
    """Every fault of the cluster and of how it is run, sorted by path.

    Without a policy nothing is known of machines and images.
    """
    reduces = is_reduction_server(running(document, "parameter_servers").image)
    return sorted(
        [
            *_chief(document),
            *_parameter_servers(document, reduces=reduces),
            *_reduction_servers(document),
            *_evaluators(document),
            *(_tpus(policy, document) if policy is not None else ()),
            *program_faults(document),
            *scheduling_faults(document),
            *(strategy_faults(policy, document, reduces=reduces) if policy is not None else ()),
        ]
    )


def role_warnings(policy: Policy | None, document: object) -> list[Fault]:
    """What the user of a sound request should know of its cluster, sorted by path."""
    unverified = _unverified(policy, document) if policy is not None else ()
    return sorted([*unverified, *_lonely_after_preemption(document)])


def is_reduction_server(image: str | None) -> bool:
    return image is not None and matches(REDUCTION_SERVER, repository(image))


def _chief(document: object) -> Iterator[Fault]:
    chief, here = at(document, "cluster", "chief"), ("cluster", "chief")
    if isinstance(chief, list):
        repair = "write its entry without '- '"
        if len(chief) > 1:
            repair = f"keep one, and write the others as workers, with count: {len(chief) - 1}"
        yield _too_many_chiefs(here, f"a list of {len(chief)}", repair)
    count = whole_at(chief, "count")
    if count is not None and count != 1:
        repair = f"write the others as workers, with count: {count - 1}" if count > 1 else "leave it out"
        yield _too_many_chiefs((*here, "count"), shown(count), repair)


def _too_many_chiefs(path: Path, found: str, repair: str) -> Fault:
    return Fault(path=json_path(path), problem="there is exactly one chief", found=found, repair=repair)


def _parameter_servers(document: object, *, reduces: bool) -> Iterator[Fault]:
    cluster = mapping_at(document, "cluster")
    if "parameter_servers" not in cluster or "workers" in cluster:
        return
    does = (
        "add up the gradients of workers"
        if reduces
        else "serve workers; the chief alone only tells these what to do"
    )
    yield fault_at(
        ("cluster", "parameter_servers"),
        f"no strategy uses them without workers: they {does}",
        found=at(cluster, "parameter_servers", "count") or "parameter_servers",
        repair="add workers, or leave parameter_servers out",
    )


def _reduction_servers(document: object) -> Iterator[Fault]:
    for path, image in images_in(document):
        if is_reduction_server(image) and path[:2] != ("cluster", "parameter_servers"):
            yield fault_at(
                path,
                "this image trains nothing: it adds up the gradients of workers",
                found=image,
                allowed="the image of parameter_servers, in worker pool 2",
                repair="name it there, and the training program here",
            )


def _evaluators(document: object) -> Iterator[Fault]:
    """An evaluator reads the chief's checkpoints where the service put both: whoever moves one, parts them."""
    if "evaluators" not in mapping_at(document, "cluster"):
        return
    trials = ", and the same for all trials" if "tuning" in mapping_at(document) else ""
    for role in ("chief", "evaluators"):
        path, value = running(document, role).env.get(CHECKPOINT_DIR, (None, None))
        if path is not None:
            yield fault_at(
                path,
                "the evaluators would have no checkpoint directory to watch: "
                f"it is the run's own, which this replaces for {role}{trials}",
                found=value,
                allowed=f"no {CHECKPOINT_DIR}: the service sets it for every replica",
                repair="leave it out; output.prefix_uri says where the run writes",
            )


def _tpus(policy: Policy, document: object) -> Iterator[Fault]:
    """TPUs where they cannot be.

    Source: https://cloud.google.com/vertex-ai/docs/training/configure-compute#tpus and
    https://cloud.google.com/vertex-ai/docs/training/hyperparameter-tuning-overview
    """
    others = [role for role, _ in roles_in(document) if role != "chief"]
    for role, machine, row in _machines(policy, document):
        path = ("cluster", role, "machine")
        if row.has_tpus and "tuning" in mapping_at(document):
            problem = "the trials of a tuning cannot use TPUs"
            repair = "take a machine with GPUs, or leave the tuning out"
            yield fault_at(path, problem, found=machine, repair=repair)
        elif row.has_tpus and (role != "chief" or others):
            yield Fault(
                path=json_path(path),
                problem="machines with TPUs train alone: a chief and no other role",
                found=shown(machine) + (f" beside {listed(others)}" if role == "chief" else ""),
                repair="leave the other roles out, and take a larger tpu_topology or accelerator.count for the chief",
            )


def _machines(policy: Policy, document: object) -> Iterator[tuple[str, str, Machines]]:
    """Each role's machine, with the policy's row of it, if there is one."""
    for role, pool in roles_in(document):
        machine = text_at(pool, "machine")
        row = policy.machines_of(machine) if machine is not None else None
        if machine is not None and row is not None:
            yield role, machine, row


def _unverified(policy: Policy, document: object) -> Iterator[Fault]:
    for role, machine, row in _machines(policy, document):
        if row.unverified:
            yield fault_at(("cluster", role, "machine"), f"not verified: {row.unverified}", found=machine)


def _lonely_after_preemption(document: object) -> Iterator[Fault]:
    scheduling, cluster = mapping_at(document, "scheduling"), mapping_at(document, "cluster")
    in_step = "workers" in cluster and "parameter_servers" not in cluster
    all_or_none = is_true(scheduling, "restart_on_worker_restart") or is_true(scheduling, "disable_retries")
    if in_step and is_true(scheduling, "spot") and not all_or_none:
        yield fault_at(
            ("scheduling", "spot"),
            "a replica that is preempted comes back alone, and replicas that train in step cannot take it in",
            found=True,
            repair="write restart_on_worker_restart: true, unless the program takes replicas in again",
        )
