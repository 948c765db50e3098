"""Which of the policy's persistent resources a run prefers to fresh machines."""

from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.policy.pools import RunPool
from trainmaster.orchestrator.core.requests.spec import JobSpec, WorkerPool

_BOUND = ("network", "reserved_ip_ranges", "persistent_resource")


def pools_for(spec: JobSpec, region: str, policy: Policy | None) -> tuple[str, ...]:
    """The pools that a short run prefers: in its region, with its machines, and enough of them.

    A run stays on fresh machines if it names a network, key or resource, which must be the pool's, a disk of its own,
    or Spot VMs, and if it has trials.
    """
    scheduling, pools = spec.scheduling, [pool for pool in spec.cluster.pools if pool is not None]
    is_bound = any(key in spec.settings for key in _BOUND) or spec.encryption_key or spec.tuning
    if policy is None or is_bound or scheduling.spot or scheduling.flex_start or not scheduling.timeout_s:
        return ()
    return tuple(
        offered.id
        for offered in policy.pools
        if (offered.region == region and scheduling.timeout_s <= offered.short_s)
        and sum(pool.replicas for pool in pools) <= offered.count
        and all(_runs_on(pool, offered) for pool in pools)
    )


def _runs_on(pool: WorkerPool, offered: RunPool) -> bool:
    wanted = {"type": pool.accelerator.type, "count": pool.accelerator.count} if pool.accelerator else None
    is_plain = pool.disk is None and pool.tpu_topology is None
    return is_plain and (pool.machine, wanted) == (offered.machine, offered.accelerator)
