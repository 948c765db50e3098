"""What a process and all that it started takes of this machine, from /proc and, where it can be read, NVML."""

import contextlib
import functools
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from trainstack.process.family import cpu_s, memory_bytes, parent_of, pids

_PER_UNIT = {"a2-highgpu": (12, 85), "a2-ultragpu": (12, 170), "a3-highgpu": (26, 234)}
_GB = {
    "standard": 4.0,
    "highmem": 8.0,
    "highcpu": 1.0,
    "n1-standard": 3.75,
    "n1-highmem": 6.5,
    "n1-highcpu": 0.9,
}
"""GB of memory for each vCPU: https://cloud.google.com/compute/docs/general-purpose-machines (2026-11)."""
_NAME = re.compile(r"((?:\w+)-(\w+))-(\d{1,4})g?")


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """The vCPUs and memory of a machine type, and how many accelerators a job requested with it."""

    cpus: float
    memory_bytes: float
    accelerators: int = 0


def machine_size(name: str, accelerators: int = 0) -> MachineSize:
    """The size by the type's name; of an unknown type, this machine's."""
    match = _NAME.fullmatch(name)
    known = _PER_UNIT.get(match[1]) if match else None
    gb = _GB.get(match[1], _GB.get(match[2])) if match else None
    if match and (known or gb):
        cpus, each = known or (1, gb or 0.0)
        number = int(match[3])
        return MachineSize(cpus=cpus * number, memory_bytes=each * number * 2**30, accelerators=accelerators)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return MachineSize(cpus=os.cpu_count() or 1, memory_bytes=memory, accelerators=accelerators)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Of a process tree: its processor time so far, and its present memory."""

    cpu_s: float
    memory_bytes: int
    gpus: Mapping[int, tuple[float, float]] | None = None
    """Of each GPU of this machine that it uses: which fractions of its time and memory are in use; None if unknown."""


def usage_of(roots: Collection[int]) -> Mapping[int, Usage]:
    """The usage of each tree by the process that is its root; without those that are gone. Reads /proc once."""
    children: dict[int, list[int]] = {}
    for pid in pids() if roots else ():
        children.setdefault(parent_of(pid), []).append(pid)
    gpus = _gpus_in_use() if roots else None
    found: dict[int, Usage] = {}
    for root in roots:
        tree, waiting = set[int](), [root]
        while waiting:
            pid = waiting.pop()
            if pid not in tree:
                tree.add(pid)
                waiting += children.get(pid, [])
        memory = sum(map(memory_bytes, tree))
        if memory:  # a zombie has none
            used = {number: use for number, (users, use) in (gpus or {}).items() if users & tree}
            found[root] = Usage(
                cpu_s=sum(map(cpu_s, tree)), memory_bytes=memory, gpus=None if gpus is None else used
            )
    return found


def _gpus_in_use() -> Mapping[int, tuple[set[int], tuple[float, float]]] | None:
    """Of each GPU of this machine: the processes that use it, and which fractions of its time and memory are in use.

    None without NVML, https://pypi.org/project/nvidia-ml-py/, or a GPU.
    """
    nvml = _loaded_nvml()
    if nvml is None:
        return None
    found: dict[int, tuple[set[int], tuple[float, float]]] = {}
    with contextlib.suppress(nvml.NVMLError):  # what was read before counts
        for number in range(nvml.nvmlDeviceGetCount()):
            gpu = nvml.nvmlDeviceGetHandleByIndex(number)
            users = {one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)}
            memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
            use = nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100
            found[number] = (users, (use, memory.used / memory.total))
    return found or None


@functools.cache
def _loaded_nvml() -> Any:  # Any: an untyped module that is usually not installed
    """The library, initialised once; None where there is none."""
    try:
        library: Any = import_module("pynvml")
        library.nvmlInit()
    except Exception:  # it is not installed, or has no driver: both for good
        return None
    return library
