"""When and how long a legacy job runs."""

from typing import Any

from trainmaster.orchestrator.core.requests.legacy.reading import Reading
from trainmaster.orchestrator.core.requests.legacy.tables import FLEX_START
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path, not_one_of, seconds

MIN_WAIT_S = 1800
MAX_PRIORITY = 1000
_STRATEGIES = ("STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST")
_HERE: Path = ("scheduling",)


class SchedulingReading(Reading):
    """The part of the translation that `scheduling` has."""

    def _scheduling(self, mine: dict[str, Any], spec: Fields) -> None:
        written = self._fields(spec, "scheduling")
        if not spec.has("scheduling"):
            return
        scheduling: dict[str, Any] = {}
        self._put(mine, (), "scheduling", scheduling, written.path)
        running_s = self._seconds(written, "maxRunningTime")
        self._put(scheduling, _HERE, "timeout_s", running_s, written.at("maxRunningTime"))
        self._wait(scheduling, mine["cluster"], written)
        self._priority(written)
        self._restart(scheduling, written)
        strategy, path = written.get("strategy"), written.at("strategy")
        if strategy == "LOW_COST":
            self._put(scheduling, _HERE, "spot", True, path)
            self._warn(path, "it becomes spot: Spot VMs may be preempted at any time", found=strategy)
        elif strategy is not None and strategy not in _STRATEGIES:
            self._faults.append(not_one_of(path, strategy, _STRATEGIES))
        self._faults += written.unknown()

    def _seconds(self, written: Fields, key: str) -> int | None:
        found = seconds(written.get(key))
        if found is None or (isinstance(found, int) and not isinstance(found, bool)):
            return found
        path, repair = written.at(key), "write for example 3600s"
        self._wrong(path, "whole seconds are wanted here", found=found, repair=repair)
        return None

    def _wait(self, scheduling: dict[str, Any], cluster: dict[str, Any], written: Fields) -> None:
        wait_s, path = self._seconds(written, "maxWaitTime"), written.at("maxWaitTime")
        if wait_s is None:
            return
        if wait_s < MIN_WAIT_S:
            allowed = f"at least {MIN_WAIT_S}s"
            self._wrong(path, "too short", found=written.get("maxWaitTime"), allowed=allowed)
        elif _can_flex(cluster):
            self._put(scheduling, _HERE, "flex_start", True, path)
            self._put(scheduling, _HERE, "max_wait_s", wait_s, path)
            self._warn(path, "it becomes flex_start: the job waits in the queue for accelerators")
        else:
            self._warn(
                path,
                "not passed on: on Vertex AI only jobs whose replicas are all alike, with GPUs from L4 on, "
                "have a longest wait",
                found=written.get("maxWaitTime"),
                repair="cancel the job by hand where it waits too long",
            )

    def _priority(self, written: Fields) -> None:
        priority, path = written.get("priority"), written.at("priority")
        if priority is None:
            return
        if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAX_PRIORITY:
            allowed = f"whole numbers from 0 to {MAX_PRIORITY}"
            self._wrong(path, "no priority", found=priority, allowed=allowed)
        else:
            self._warn(path, "not passed on: jobs of Vertex AI have no priority", found=priority)

    def _restart(self, scheduling: dict[str, Any], written: Fields) -> None:
        """The whole job is restarted where the file speaks of it at all.

        The field's name and its reference say opposite things: by its name `false` asks for a restart of the
        job, by the reference `true` does. A restart of the whole job is right for every program.
        """
        resilient = written.get("resilientToWorkerRestart")
        path = written.at("resilientToWorkerRestart")
        if resilient is None:
            return
        if not isinstance(resilient, bool):
            self._wrong(path, "true or false is wanted here", found=resilient)
            return
        self._put(scheduling, _HERE, "restart_on_worker_restart", True, path)
        self._warn(
            path,
            "when a worker restarts, the whole job does: the field's name and its reference say opposite things, "
            "and that is right for both",
            found=resilient,
            repair="leave it out where a worker may come back alone",
        )


def _can_flex(cluster: dict[str, Any]) -> bool:
    """Whether every pool is the same machine with an accelerator that one may wait for."""
    pools = [pool for pool in cluster.values() if isinstance(pool, dict)]
    machines = [(pool.get("machine"), pool.get("accelerator")) for pool in pools]
    first = machines[0][1] if machines else None
    return (
        isinstance(first, dict)
        and first.get("type") in FLEX_START
        and all(m == machines[0] for m in machines)
    )
