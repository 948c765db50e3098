"""The memory of machine types, and of each the next larger one that a policy allows."""

import re
from collections.abc import Sequence

from trainmaster.orchestrator.core.policy.policy import Machines

_GB = {
    "n1-standard": 3.75, "n1-highmem": 6.5, "n1-highcpu": 0.9, "e2-standard": 4, "e2-highmem": 8, "e2-highcpu": 1,
    "n2-standard": 4, "n2-highmem": 8, "n2-highcpu": 1, "n4-standard": 4, "n4-highmem": 8, "n4-highcpu": 2,
    "c2-standard": 4, "g2-standard": 4, "a2-highgpu": 85, "a2-ultragpu": 170, "a3-highgpu": 234,
}  # fmt: skip
"""GB of memory for each vCPU, or for each GPU, of the number in a machine's name.

Source: https://cloud.google.com/compute/docs/general-purpose-machines, and /accelerator-optimized-machines (2026-11).
"""
_NAME = re.compile(r"((\w+)-\w+)-(\d+)g?")


def memory_of(machine: str) -> float | None:
    """The memory of a machine type in GB; None if it is not known."""
    name, each = _NAME.fullmatch(machine), _memory_of_each(machine)
    return each * int(name[3]) if name and each is not None else None


def _memory_of_each(machine: str) -> float | None:
    """GB for each of its vCPUs, or GPUs."""
    name = _NAME.fullmatch(machine)
    return _GB.get(name[1]) if name else None


def next_larger(
    machine: str, rows: Sequence[Machines], accelerator: tuple[str, int] | None = None
) -> tuple[str, float] | None:
    """The machine type of the same series with the least memory above this one's, and its GB, if the rows have one.

    It has no less for each vCPU, and takes these accelerators, their type and count, if any are given.
    """
    own, each, series = memory_of(machine) or 0, _memory_of_each(machine) or 0, machine.partition("-")[0]
    types = (name for row in rows if _takes(row, accelerator) for name in row.types)
    same = (
        name for name in types if name.partition("-")[0] == series and (_memory_of_each(name) or 0) >= each
    )
    sizes = [(size, name) for name in same if (size := memory_of(name)) is not None and size > own]
    return min(sizes)[::-1] if sizes else None


def _takes(row: Machines, accelerator: tuple[str, int] | None) -> bool:
    return accelerator is None or accelerator[1] in (row.accelerators or {}).get(accelerator[0], ())
