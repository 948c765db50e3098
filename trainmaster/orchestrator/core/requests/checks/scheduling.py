"""What may be waited for: machines of flexible start.

Source: https://cloud.google.com/vertex-ai/docs/training/schedule-jobs-dws
"""

from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault, shown
from trainmaster.orchestrator.core.documents.values import is_true, text_at
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
