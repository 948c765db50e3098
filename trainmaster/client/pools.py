"""Persistent resources, with the caller's own credentials: those of the policy's pools, and others in its regions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from trainmaster.client.deployment import read_deployment
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.runs.costs import PoolCost
from trainmaster.client.runs.listing import Filters
from trainmaster.client.submission.terms import Terms, deployed_terms
from trainmaster.orchestrator.core.admission.cost import role_prices
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.job_names import location_name
from trainmaster.orchestrator.core.policy.pools import RunPool
from trainmaster.orchestrator.core.requests.spec import Accelerator, Cluster, Container, JobSpec, WorkerPool

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

ABSENT = "ABSENT"


@dataclass(frozen=True, kw_only=True)
class ListedPool:
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

    @property
    def document(self) -> dict[str, Any]:
        document: Any = encoded(self)
        return dict(document)

    def cost(self, since: datetime | None, now: datetime) -> Decimal | None:
        """What it has cost since then, with as many machines as now; None: unknown, or it does not exist."""
        if self.since is None or self.per_hour is None:
            return None
        ran_s = max(0.0, (now - max(self.since, since or self.since)).total_seconds())
        return self.per_hour * Decimal(str(ran_s)) / 3600


def pool_costs(clients: "Clients", filters: Filters) -> tuple[PoolCost, ...]:
    """Of those that exist, if the policy has pools; what was deleted before is in the bill alone.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: they cannot be listed.
    """
    try:
        has_pools = bool(read_deployment(clients).policy.get("pools"))
    except (NotFound, ClientRefused):
        has_pools = False
    until = filters.before or datetime.now(UTC)
    return tuple(
        PoolCost(
            id=one.id,
            region=one.region,
            currency=one.currency,
            per_hour=one.per_hour,
            cost=one.cost(filters.since, until),
        )
        for one in (list_pools(clients) if has_pools else ())
        if one.state != ABSENT
    )


def list_pools(clients: "Clients", ids: Sequence[str] = ()) -> list[ListedPool]:
    """All of them, or those of these ids: one call for each of the policy's regions.

    Raises:
        NotFound, ClientRefused: the deployment's policy cannot be read, or there are no such pools, all of which are named.
        google.api_core.exceptions.GoogleAPICallError: they cannot be listed.
    """
    terms = deployed_terms(clients)
    found = {(one.id, one.region): one for one in _all_pools(clients, terms)}
    known = {one.id for one in found.values()}
    if unknown := [one for one in ids if one not in known]:
        known_text = ", ".join(sorted(known)) or "none; the policy's `pools` name them"
        raise NotFound(f"No pool is called {', '.join(unknown)}. Known: {known_text}")
    return [one for one in found.values() if not ids or one.id in ids]


def _all_pools(clients: "Clients", terms: Terms) -> Iterator[ListedPool]:
    pools = terms.policy.pools if terms.policy else ()
    regions = terms.policy.region_names if terms.policy else (clients.context.region,)
    for pool in pools:
        yield _priced(pool, terms.prices)
    for region in regions:
        place = location_name(clients.context.project, region)
        for resource in clients.pools_of_region(region).list_persistent_resources(parent=place):
            yield _listed(resource, pools, terms.prices)


def _listed(resource: Any, pools: Sequence[RunPool], prices: Prices) -> ListedPool:  # Any: proto-plus
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
    return replace(
        _priced(row, prices),
        state=resource.state.name,
        used=sum(one.used_replica_count for one in machines),
        since=resource.start_time or None,
        pool=next((pool for pool in pools if (pool.id, pool.region) == (pool_id, region)), None),
    )


def _priced(pool: RunPool, prices: Prices) -> ListedPool:
    accelerator = Accelerator(**pool.accelerator) if pool.accelerator else None
    chief = WorkerPool(
        replicas=pool.count, machine=pool.machine, program=Container(image=""), accelerator=accelerator
    )
    price = role_prices(JobSpec(model_name="", cluster=Cluster(chief=chief)), pool.region, prices)["chief"]
    return ListedPool(
        id=pool.id,
        region=pool.region,
        machine=f"{pool.machine} with {accelerator.count} {accelerator.type}"
        if accelerator
        else pool.machine,
        machines=pool.count,
        currency=prices.currency,
        per_hour=None if price.unknown else price.per_hour,
        pool=pool,
    )


def create_pools(clients: "Clients", pools: Sequence[ListedPool]) -> Mapping[str, Any]:
    """Begin to create each, as the policy has it; their operations by id. Jobs on it run as accounts of their own.

    Raises:
        ClientRefused: some exist already, or are in no policy; nothing was created.
    """
    wrong = [f"{one.id} is {one.state} already" for one in pools if one.state != ABSENT]
    if wrong:
        raise ClientRefused("\n".join(wrong))
    return {one.id: _create(clients, one.pool) for one in pools if one.pool is not None}


def _create(clients: "Clients", pool: RunPool) -> Any:
    from google.cloud.aiplatform_v1.types.persistent_resource import PersistentResource

    accelerator = pool.accelerator or {}
    machine = {f"accelerator_{key}": value for key, value in accelerator.items()}
    resource = {
        "display_name": pool.id,
        "resource_pools": [
            {"machine_spec": {**machine, "machine_type": pool.machine}, "replica_count": pool.count}
        ],
        "resource_runtime_spec": {"service_account_spec": {"enable_custom_service_account": True}},
    }
    return clients.pools_of_region(pool.region).create_persistent_resource(
        parent=location_name(clients.context.project, pool.region),
        persistent_resource_id=pool.id,
        persistent_resource=PersistentResource(resource),
    )


def resize_pool(clients: "Clients", listed: ListedPool, count: int) -> Any:
    """Begin to give it `count` machines; the operation."""
    client = clients.pools_of_region(listed.region)
    resource = client.get_persistent_resource(name=_name(clients, listed))
    resource.resource_pools[0].replica_count = count
    mask = {"paths": ["resource_pools.replica_count"]}
    return client.update_persistent_resource(persistent_resource=resource, update_mask=mask)


def delete_pools(clients: "Clients", pools: Sequence[ListedPool], *, cancels: bool) -> Mapping[str, Any]:
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
        one.id: clients.pools_of_region(one.region).delete_persistent_resource(name=_name(clients, one))
        for one in pools
    }


def _name(clients: "Clients", listed: ListedPool) -> str:
    return f"{location_name(clients.context.project, listed.region)}/persistentResources/{listed.id}"
