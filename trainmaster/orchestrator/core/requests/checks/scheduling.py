"""Where the ways of running a job exclude each other.

Sources: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling,
https://cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws (flexible start) and
https://cloud.google.com/vertex-ai/docs/training/train-nfs-share
"""

from collections.abc import Iterator, Mapping

from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, listed, shown
from trainmaster.orchestrator.core.documents.unvalidated import (
    Path,
    at,
    is_true,
    list_at,
    mapping_at,
    text_at,
    whole_at,
)
from trainmaster.orchestrator.core.requests.programs import roles_in

FLEX_START_ACCELERATORS = (
    "NVIDIA_L4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
)
"""What may be waited for: L4, A100, H100, H200 and B200, by the service's names."""
FLEX_START_MOST_S = 7 * 24 * 3600
_MACHINE = ("machine", "accelerator", "tpu_topology")


def scheduling_faults(document: object) -> Iterator[Fault]:
    """Settings that contradict each other, and pools that cannot be waited for."""
    scheduling = mapping_at(document, "scheduling")
    if is_true(scheduling, "restart_on_worker_restart") and is_true(scheduling, "disable_retries"):
        yield fault_at(
            ("scheduling", "restart_on_worker_restart"),
            "with disable_retries nothing is ever started again",
            found=True,
            repair="leave out one of the two",
        )
    if is_true(scheduling, "flex_start"):
        yield from _flex_start(document)
    elif "max_wait_s" in scheduling:
        yield fault_at(
            ("scheduling", "max_wait_s"),
            "only jobs with flex_start wait for machines",
            found=scheduling["max_wait_s"],
            repair="write flex_start: true, or leave it out; timeout_s limits how long a job runs",
        )
    yield from _network(document)


def _flex_start(document: object) -> Iterator[Fault]:
    if is_true(document, "scheduling", "spot"):
        yield fault_at(
            ("scheduling", "spot"),
            "a job is either on Spot VMs or flex_start, not both",
            found=True,
            repair="leave out one of the two",
        )
    timeout_s = whole_at(document, "scheduling", "timeout_s")
    if timeout_s is not None and timeout_s > FLEX_START_MOST_S:
        yield fault_at(
            ("scheduling", "timeout_s"),
            "a job with flex_start runs at most 7 days",
            found=timeout_s,
            allowed=f"at most {FLEX_START_MOST_S}",
        )
    yield from _flex_start_machines(document)


def _flex_start_machines(document: object) -> Iterator[Fault]:
    chief = mapping_at(document, "cluster", "chief")
    for role, pool in roles_in(document):
        accelerator = text_at(pool, "accelerator", "type")
        if "machine" in pool and accelerator not in FLEX_START_ACCELERATORS:
            yield fault_at(
                ("cluster", role, *(("accelerator", "type") if accelerator else ("machine",))),
                "flex_start waits for GPUs that are scarce, and this is none",
                found=accelerator or pool["machine"],
                allowed=listed(FLEX_START_ACCELERATORS),
                repair="take such a machine, or leave flex_start out",
            )
        else:
            yield from _unlike_chief(("cluster", role), pool, chief)


def _unlike_chief(here: Path, pool: Mapping[str, object], chief: Mapping[str, object]) -> Iterator[Fault]:
    for key in _MACHINE:
        if pool.get(key) != chief.get(key):
            problem = "with flex_start every role has the same machine and accelerator"
            allowed = f"the chief's, {shown(chief.get(key))}"
            yield fault_at((*here, key), problem, found=pool.get(key), allowed=allowed)


def _network(document: object) -> Iterator[Fault]:
    """What is reached through a network needs one; a persistent resource has its own."""
    if at(document, "network") is not None or at(document, "persistent_resource") is not None:
        return
    needs: list[Path] = [("cluster", role, "nfs_mounts") for role, _ in roles_in(document)]
    for path in (("reserved_ip_ranges",), *needs):
        if list_at(document, *map(str, path)):
            yield fault_at(
                path,
                "it is reached through a network, and the request names none",
                found=at(document, *map(str, path)),
                repair="write network: projects/PROJECT_NUMBER/global/networks/NAME",
            )
