"""Where the ways of running a job exclude each other.

Sources: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#Scheduling,
https://cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws (flexible start) and
https://cloud.google.com/vertex-ai/docs/training/train-nfs-share
"""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault, shown
from trainmaster.orchestrator.core.documents.unvalidated import Path, is_true, list_at, text_at, whole_at
from trainmaster.orchestrator.core.requests.draft import Draft

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


def scheduling_faults(draft: Draft) -> Iterator[Fault]:
    """Settings that contradict each other, and pools that cannot be waited for."""
    scheduling = draft.scheduling
    if is_true(scheduling, "restart_on_worker_restart") and is_true(scheduling, "disable_retries"):
        yield Fault(
            at=("scheduling", "restart_on_worker_restart"),
            problem="with disable_retries nothing is ever started again",
            value=True,
            repair="leave out one of the two",
        )
    if is_true(scheduling, "flex_start"):
        yield from _flex_start(draft)
    elif "max_wait_s" in scheduling:
        yield Fault(
            at=("scheduling", "max_wait_s"),
            problem="only jobs with flex_start wait for machines",
            value=scheduling["max_wait_s"],
            repair="write flex_start: true, or leave it out; timeout_s limits how long a job runs",
        )
    yield from _network(draft)


def _flex_start(draft: Draft) -> Iterator[Fault]:
    if is_true(draft.scheduling, "spot"):
        yield Fault(
            at=("scheduling", "spot"),
            problem="a job is either on Spot VMs or flex_start, not both",
            value=True,
            repair="leave out one of the two",
        )
    timeout_s = whole_at(draft.scheduling, "timeout_s")
    if timeout_s is not None and timeout_s > FLEX_START_MOST_S:
        yield Fault(
            at=("scheduling", "timeout_s"),
            problem="a job with flex_start runs at most 7 days",
            value=timeout_s,
            allowed=f"at most {FLEX_START_MOST_S}",
        )
    chief = draft.roles.get("chief", {})
    for role, pool in draft.roles.items():
        accelerator = text_at(pool, "accelerator", "type")
        if "machine" in pool and accelerator not in FLEX_START_ACCELERATORS:
            yield Fault(
                at=("cluster", role, *(("accelerator", "type") if accelerator else ("machine",))),
                problem="flex_start waits for GPUs that are scarce, and this is none",
                value=accelerator or pool["machine"],
                among=FLEX_START_ACCELERATORS,
                repair="take such a machine, or leave flex_start out",
            )
            continue
        for key in _MACHINE:
            if pool.get(key) != chief.get(key):
                yield Fault(
                    at=("cluster", role, key),
                    problem="with flex_start every role has the same machine and accelerator",
                    value=pool.get(key),
                    allowed=f"the chief's, {shown(chief.get(key))}",
                )


def _network(draft: Draft) -> Iterator[Fault]:
    """What is reached through a network needs one; a persistent resource has its own."""
    document = draft.document
    if document.get("network") is not None or document.get("persistent_resource") is not None:
        return
    needs: dict[Path, object] = {
        ("cluster", role, "nfs_mounts"): pool.get("nfs_mounts") for role, pool in draft.roles.items()
    }
    for path, value in {("reserved_ip_ranges",): document.get("reserved_ip_ranges"), **needs}.items():
        if list_at(value):
            yield Fault(
                at=path,
                problem="it is reached through a network, and the request names none",
                value=value,
                repair="write network: projects/PROJECT_NUMBER/global/networks/NAME",
            )
