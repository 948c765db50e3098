"""Samples what the replicas of jobs take of their machines, every few seconds and at their end."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from trainstack.monitoring.samples import CPU, GPU, GPU_MEMORY, MEMORY, Point, Samples, SeriesKey
from trainstack.monitoring.usage import MachineSize, Usage, usage_of
from trainstack.process.processes import Child

SAMPLE_S = 2.0
"""The service samples every 60 s, which most local jobs do not last."""


@dataclass(kw_only=True)
class _Replica:
    """What a running replica had used when it was last sampled, at `at` of the monotonic clock."""

    job_id: str
    task: str
    size: MachineSize
    at: float
    cpu_s: float = 0.0


class Meter:
    """Keeps samples of the processes that are under `watch`, while `run` runs."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self._running: dict[Child, _Replica] = {}
        self._lock = threading.Lock()

    def watch(self, child: Child, *, job_id: str, task: str, size: MachineSize) -> None:
        """Sample the replica until it ends; it has just been started."""
        with self._lock:
            self._running[child] = _Replica(job_id=job_id, task=task, size=size, at=time.monotonic())

    def finish(self, child: Child) -> None:
        """Add what an ended replica has used since its last sample."""
        with self._lock:
            replica = self._running.pop(child, None)
            if replica and child.ended_at is not None and child.cpu_s is not None:
                self._keep(replica, child.ended_at, child.cpu_s, is_last=True)

    async def run(self) -> None:
        """Sample until this task is cancelled."""
        while True:
            await asyncio.sleep(SAMPLE_S)
            with contextlib.suppress(OSError):  # a file of /proc that cannot be read now
                await asyncio.to_thread(self.sample)

    def sample(self) -> None:
        """Take one sample of each replica that runs."""
        with self._lock:
            by_pid = {child.pid: child for child in self._running}
        found, now = usage_of(by_pid), time.monotonic()
        with self._lock:
            for pid, usage in found.items():
                child = by_pid[pid]
                # Once its end is noticed, another process may have its id.
                if child.ended_at is None and (replica := self._running.get(child)):
                    self._keep(replica, now, usage.cpu_s, fractions_of(replica.size, usage))

    def _keep(
        self,
        replica: _Replica,
        now: float,
        cpu_s: float,
        values: Mapping[tuple[str, str], float] | None = None,
        *,
        is_last: bool = False,
    ) -> None:
        if (span_s := now - replica.at) <= 0:
            return
        # It is less than before if a process has ended that none in the tree has waited for.
        cpu = max(cpu_s - replica.cpu_s, 0.0) / span_s / replica.size.cpus
        at = time.time() - (time.monotonic() - now)
        for (metric, accelerator), value in {(CPU, ""): cpu, **(values or {})}.items():
            key = SeriesKey(metric, replica.job_id, replica.task, accelerator)
            self.samples.add(key, Point(at, span_s, min(value, 1.0)), is_last=is_last)
        replica.at, replica.cpu_s = now, cpu_s


def fractions_of(size: MachineSize, usage: Usage) -> Mapping[tuple[str, str], float]:
    """What is in use now, by metric and accelerator. A requested accelerator that is not used has 0."""
    values = {(MEMORY, ""): usage.memory_bytes / size.memory_bytes}
    if usage.gpus is not None:
        unused = [(0.0, 0.0)] * size.accelerators
        for number, (use, memory) in enumerate([*usage.gpus.values(), *unused][: size.accelerators]):
            values |= {(GPU, str(number)): use, (GPU_MEMORY, str(number)): memory}
    return values
