"""When and how long a legacy job runs."""

from trainmaster.orchestrator.core.documents.fields import Fields, seconds
from trainmaster.orchestrator.core.documents.translation import Own
from trainmaster.orchestrator.core.requests.checks.scheduling import FLEX_START_ACCELERATORS
from trainmaster.orchestrator.core.requests.legacy.reading import Job

MIN_WAIT_S = 1800
MAX_PRIORITY = 1000
_STRATEGIES = ("STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST")


def write_scheduling(job: Job) -> None:
    written = job.spec.fields("scheduling")
    if not job.spec.has("scheduling"):
        return
    own = job.own.inner("scheduling", written.path)
    own.put("timeout_s", _seconds(written, "maxRunningTime"), written.at("maxRunningTime"))
    _write_wait(written, own, job.cluster)
    _warn_of_priority(written)
    _write_restart(written, own)
    _write_strategy(written, own)


def _write_strategy(written: Fields, own: Own) -> None:
    strategy = written.get("strategy")
    if strategy == "LOW_COST":
        own.put("spot", True, written.at("strategy"))
        written.warn("strategy", "it becomes spot: Spot VMs may be preempted at any time")
    elif strategy is not None and strategy not in _STRATEGIES:
        written.refuse_choice("strategy", _STRATEGIES)


def _seconds(written: Fields, key: str) -> int | None:
    found = seconds(written.get(key))
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    written.refuse(key, "whole seconds are wanted here", repair="write for example 3600s")
    return None


def _write_wait(written: Fields, own: Own, cluster: Own) -> None:
    key = "maxWaitTime"
    wait_s = _seconds(written, key)
    if wait_s is None:
        return
    if wait_s < MIN_WAIT_S:
        written.refuse(key, "too short", allowed=f"at least {MIN_WAIT_S}s")
    elif _can_flex(cluster):
        own.put("flex_start", True, written.at(key))
        own.put("max_wait_s", wait_s, written.at(key))
        problem = "it becomes flex_start: the job waits in the queue for accelerators"
        written.warn(key, problem, found="")
    else:
        written.warn(
            key,
            "not passed on: on Vertex AI only jobs whose replicas are all alike, with GPUs from L4 on, "
            "have a longest wait",
            repair="cancel the job by hand where it waits too long",
        )


def _warn_of_priority(written: Fields) -> None:
    priority = written.get("priority")
    if priority is None:
        return
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAX_PRIORITY:
        written.refuse("priority", "no priority", allowed=f"whole numbers from 0 to {MAX_PRIORITY}")
    else:
        written.warn("priority", "not passed on: jobs of Vertex AI have no priority")


def _write_restart(written: Fields, own: Own) -> None:
    """The whole job is restarted where the file speaks of it at all.

    The field's name and its reference say opposite things: by its name `false` asks for a restart of the
    job, by the reference `true` does. A restart of the whole job is right for every program.
    """
    key = "resilientToWorkerRestart"
    resilient = written.get(key)
    if resilient is None:
        return
    if not isinstance(resilient, bool):
        written.refuse(key, "true or false is wanted here")
        return
    own.put("restart_on_worker_restart", True, written.at(key))
    written.warn(
        key,
        "when a worker restarts, the whole job does: the field's name and its reference say opposite things, "
        "and that is right for both",
        repair="leave it out where a worker may come back alone",
    )


def _can_flex(cluster: Own) -> bool:
    """Whether every pool is the same machine with an accelerator that one may wait for."""
    pools = [pool for pool in cluster.content.values() if isinstance(pool, dict)]
    machines = [(pool.get("machine"), pool.get("accelerator")) for pool in pools]
    first = machines[0][1] if machines else None
    return (
        isinstance(first, dict)
        and str(first.get("type")) in FLEX_START_ACCELERATORS
        and all(machine == machines[0] for machine in machines)
    )
