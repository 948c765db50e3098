"""Persistent resources, with the caller's own credentials: those of the policy's pools, and others in its regions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.deployment import read_deployment
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.records import Encoded
from trainmaster.client.runs.costs import PoolCost
from trainmaster.client.runs.listing import Filters
from trainmaster.client.submission.terms import deployed_policy
from trainmaster.orchestrator.core.admission.cost import role_prices
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.job_names import location_name
from trainmaster.orchestrator.core.policy.pools import RunPool
from trainmaster.orchestrator.core.requests.spec import Accelerator, Cluster, Container, JobSpec, WorkerPool

ABSENT = "ABSENT"


@dataclass(frozen=True, kw_only=True)
class ListedPool(Encoded):
    """A persistent resource, or a pool of the policy without one, whose state is ABSENT.

    `per_hour`: what its machines cost, whether they run jobs or not; None: unknown. `pool`: the policy's row, if any.
    """

    id: str
    region: str
    state: str = ABSENT
    machine: str
    machines: int
    used: int = 0
    since: datetime | None = None
    currency: str
    per_hour: Decimal | None = None
    pool: RunPool | None = None


def pool_costs(clients: Clients, filters: Filters) -> tuple[PoolCost, ...]:
    """Of those that exist, if the policy has pools, with as many machines as now; the bill alone has what was deleted.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: they cannot be listed.
    """
    try:
        found = list_pools(clients) if read_deployment(clients).policy.get("pools") else []
    except (NotFound, ClientRefused):
        return ()
    until = filters.before or datetime.now(UTC)
    return tuple(_cost(one, filters.since, until) for one in found if one.state != ABSENT)


def _cost(listed: ListedPool, since: datetime | None, until: datetime) -> PoolCost:
    cost, per_hour = None, listed.per_hour
    if listed.since is not None and per_hour is not None:
        ran_s = (until - max(listed.since, since or listed.since)).total_seconds()
        cost = per_hour * Decimal(str(max(ran_s, 0.0))) / 3600
    return PoolCost(
        id=listed.id, region=listed.region, currency=listed.currency, per_hour=per_hour, cost=cost
    )


def list_pools(clients: Clients, ids: Sequence[str] = ()) -> list[ListedPool]:
    """All of them, or those of these ids: one call for each of the policy's regions.

    Raises:
        NotFound, ClientRefused: the deployment's policy cannot be read, or there are no such pools, all of which are named.
        google.api_core.exceptions.GoogleAPICallError: they cannot be listed.
    """
    policy, prices, _ = deployed_policy(clients)
    rows = {(pool.id, pool.region): pool for pool in policy.pools}
    found = {key: _pool_of_policy(pool, prices) for key, pool in rows.items()}
    for region in policy.region_names:
        place = location_name(clients.context.project, region)
        for resource in _service(clients, region).list_persistent_resources(parent=place):
            one = _pool_of(resource, prices)
            found[(one.id, region)] = replace(one, pool=rows.get((one.id, region)))
    known = {one.id for one in found.values()}
    if unknown := [one for one in ids if one not in known]:
        known_text = ", ".join(sorted(known)) or "none; the policy's `pools` name them"
        raise NotFound(f"No pool is called {', '.join(unknown)}. Known: {known_text}")
    return [one for one in found.values() if not ids or one.id in ids]


def _pool_of(resource: Any, prices: Prices) -> ListedPool:  # Any: proto-plus
    machines, first = resource.resource_pools, resource.resource_pools[0]
    spec = first.machine_spec
    kind = {"type": spec.accelerator_type.name, "count": spec.accelerator_count}
    region, pool_id = resource.name.split("/")[3::2]
    row = RunPool(
        id=pool_id,
        region=region,
        machine=spec.machine_type,
        count=first.replica_count,
        accelerator=kind if spec.accelerator_count else None,
    )
    used = sum(one.used_replica_count for one in machines)
    return replace(
        _pool_of_policy(row, prices), state=resource.state.name, used=used, since=resource.start_time or None
    )


def _pool_of_policy(pool: RunPool, prices: Prices) -> ListedPool:
    accelerator = Accelerator(**pool.accelerator) if pool.accelerator else None
    chief = WorkerPool(
        replicas=pool.count, machine=pool.machine, program=Container(image=""), accelerator=accelerator
    )
    price = role_prices(JobSpec(model_name="", cluster=Cluster(chief=chief)), pool.region, prices)["chief"]
    return ListedPool(
        id=pool.id,
        region=pool.region,
        machine=pool.machine + (f" with {accelerator.count} {accelerator.type}" if accelerator else ""),
        machines=pool.count,
        currency=prices.currency,
        per_hour=None if price.unknown else price.per_hour,
        pool=pool,
    )


def create_pools(clients: Clients, pools: Sequence[ListedPool]) -> Mapping[str, Any]:
    """Begin to create each, as the policy has it; their operations by id. Jobs on it run as accounts of their own.

    Raises:
        ClientRefused: some exist already, or are in no policy; nothing was created.
    """
    if wrong := [f"{one.id} is {one.state} already" for one in pools if one.state != ABSENT]:
        raise ClientRefused("\n".join(wrong))
    return {one.id: _create(clients, one.pool) for one in pools if one.pool is not None}


def _create(clients: Clients, pool: RunPool) -> Any:
    machine = {f"accelerator_{key}": value for key, value in (pool.accelerator or {}).items()}
    resource = {
        "display_name": pool.id,
        "resource_pools": [
            {"machine_spec": {**machine, "machine_type": pool.machine}, "replica_count": pool.count}
        ],
        "resource_runtime_spec": {"service_account_spec": {"enable_custom_service_account": True}},
    }
    place = location_name(clients.context.project, pool.region)
    request = {"parent": place, "persistent_resource_id": pool.id, "persistent_resource": resource}
    return _service(clients, pool.region).create_persistent_resource(request=request)


def resize_pool(clients: Clients, listed: ListedPool, count: int) -> Any:
    """Begin to give it `count` machines; the operation."""
    client = _service(clients, listed.region)
    resource = client.get_persistent_resource(name=_name(clients, listed))
    resource.resource_pools[0].replica_count = count
    mask = {"paths": ["resource_pools.replica_count"]}
    return client.update_persistent_resource(persistent_resource=resource, update_mask=mask)


def delete_pools(clients: Clients, pools: Sequence[ListedPool], *, cancels: bool) -> Mapping[str, Any]:
    """Begin to delete each; their operations by id.

    Raises:
        ClientRefused: some do not exist, or run jobs, which `cancels` allows to cancel; nothing was deleted.
    """
    wrong = [f"{one.id} does not exist" for one in pools if one.state == ABSENT]
    wrong += [
        f"{one.used} machines of {one.id} run jobs, which would be cancelled: --cancel-jobs"
        for one in pools
        if one.used and not cancels
    ]
    if wrong:
        raise ClientRefused("\n".join(wrong))
    return {
        one.id: _service(clients, one.region).delete_persistent_resource(name=_name(clients, one))
        for one in pools
    }


def _service(clients: Clients, region: str) -> Any:
    return clients.vertex("persistent_resource_service", region)


def _name(clients: Clients, listed: ListedPool) -> str:
    return f"{location_name(clients.context.project, listed.region)}/persistentResources/{listed.id}"
