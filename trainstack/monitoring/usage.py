"""What a process and all that it started takes of this machine, from /proc and, where it can be read, NVML."""

import functools
import os
import re
from collections import defaultdict
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from trainstack.process.family import pids, stat_of

_GB = {
    "a2-highgpu": 85.0, "a2-ultragpu": 170.0, "a3-highgpu": 234.0, "standard": 4.0, "highmem": 8.0, "highcpu": 1.0,
    "n1-standard": 3.75, "n1-highmem": 6.5, "n1-highcpu": 0.9,
}  # fmt: skip
"""GB of memory for each vCPU, or GPU: https://cloud.google.com/compute/docs/general-purpose-machines (2026-11)."""
_CPUS_A_GPU = {"a2-highgpu": 12, "a2-ultragpu": 12, "a3-highgpu": 26}
_NAME = re.compile(r"(\w+-(\w+))-(\d{1,4})g?")


@dataclass(frozen=True, kw_only=True)
class MachineSize:
    """The vCPUs and memory of a machine type, and how many accelerators a job requested with it."""

    cpus: float
    memory_bytes: float
    accelerators: int = 0


def machine_size(name: str, accelerators: int = 0) -> MachineSize:
    """The size by the type's name; of an unknown type, this machine's."""
    match = _NAME.fullmatch(name)
    if match and (gb := _GB.get(match[1], _GB.get(match[2]))):
        units = int(match[3]) or 1
        cpus, memory = units * _CPUS_A_GPU.get(match[1], 1), gb * units * 2**30
    else:
        cpus, memory = os.cpu_count() or 1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return MachineSize(cpus=cpus, memory_bytes=memory, accelerators=accelerators)


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Of a process tree: its processor time so far, and its present memory."""

    cpu_s: float
    memory_bytes: int
    gpus: Mapping[int, tuple[float, float]] | None = None
    """Of each GPU of this machine that it uses: which fractions of its time and memory are in use; None if unknown."""


def usage_of(roots: Collection[int]) -> Mapping[int, Usage]:
    """The usage by the process that is the root of a tree or leads a session; without those that are gone.

    Reads each process of this machine once.
    """
    if not roots:
        return {}
    processes = {pid: stat for pid in pids() if (stat := stat_of(pid))}
    below = defaultdict[int, list[int]](list)
    for pid, stat in processes.items():
        for above in {stat.parent, stat.session}:  # an orphan's parent is the machine's first process
            below[above].append(pid)
    gpus = _gpus_in_use(processes)
    found: dict[int, Usage] = {}
    for root in processes.keys() & set(roots):
        tree, waiting = set[int](), [root]
        while waiting:
            if (pid := waiting.pop()) not in tree:
                tree.add(pid)
                waiting += below[pid]
        if memory := sum(processes[pid].memory_bytes for pid in tree):  # a zombie has none
            cpu_s = sum(processes[pid].cpu_s for pid in tree)
            used = {number: use for number, (users, use) in (gpus or {}).items() if users & tree}
            found[root] = Usage(cpu_s=cpu_s, memory_bytes=memory, gpus=used if gpus else None)
    return found


def _gpus_in_use(processes: Container[int]) -> Mapping[int, tuple[set[int], tuple[float, float]]] | None:
    """Of each GPU of this machine: the processes that use it, and which fractions of its time and memory are in use.

    None without NVML (https://pypi.org/project/nvidia-ml-py/) or a GPU, and if the users of one are unknown: it cannot be
    read, or NVML shows none of them, or others than these `processes`, as in a container.
    """
    if (nvml := _loaded_nvml()) is None:
        return None
    found: dict[int, tuple[set[int], tuple[float, float]]] = {}
    try:
        for number in range(nvml.nvmlDeviceGetCount()):
            gpu = nvml.nvmlDeviceGetHandleByIndex(number)
            users = {one.pid for one in nvml.nvmlDeviceGetComputeRunningProcesses(gpu)}
            memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
            use = nvml.nvmlDeviceGetUtilizationRates(gpu).gpu / 100
            if any(pid not in processes for pid in users) or (use and not users):
                return None
            found[number] = (users, (use, memory.used / memory.total))
    except nvml.NVMLError:
        return None
    return found or None


@functools.cache
def _loaded_nvml() -> Any:  # Any: an untyped module that is usually not installed
    """The library, initialised once; None without it, or without a driver."""
    try:
        library: Any = import_module("pynvml")
        library.nvmlInit()
    except Exception:  # it is not installed, or has no driver: both for good
        return None
    return library
