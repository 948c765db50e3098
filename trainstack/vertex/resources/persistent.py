"""PersistentResourceService: machines that stay between jobs.

Sources: https://cloud.google.com/vertex-ai/docs/training/persistent-resource-overview and the pages beside it, read
2026-11. A change of a resource takes CHANGING_S, and waits for this machine's places. Rebooting isn't served, and
stockouts do not strike.
"""

import re
from collections.abc import Iterator, Mapping

from google.cloud.aiplatform_v1.types.persistent_resource import PersistentResource
from google.protobuf import empty_pb2

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.jobs.resource.job import copy_of
from trainstack.jobs.resource.machines import MachineTypes, disk_faults, machine_faults
from trainstack.jobs.service import JobService
from trainstack.vertex.resources.handlers import Handler, StandardHandlers, is_settled, touched
from trainstack.vertex.resources.methods import message_of
from trainstack.vertex.resources.store import Message, ResourceStore, by_number

_KIND, _COLLECTION = "PersistentResource", "persistentResources"
_ID = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_STATE = PersistentResource.State
_SIZE = "resource_pools.replica_count"


class PersistentResources:
    """The persistent resources of one store; those of the last stack hold their machines again."""

    def __init__(self, store: ResourceStore, standard: StandardHandlers, jobs: JobService) -> None:
        self._store, self._standard, self._jobs = store, standard, jobs
        for resource in store.every(message_of(_KIND), _COLLECTION):
            jobs.hold_machines(resource)

    def handlers(self) -> Mapping[str, Handler]:
        return {
            "CreatePersistentResource": self.create,
            "GetPersistentResource": lambda request: self._shown(self._get(request.name)),
            "ListPersistentResources": self.list_page,
            "UpdatePersistentResource": self.update,
            "DeletePersistentResource": self.delete,
        }

    def create(self, request: Message) -> Message:
        """Raises `ApiError`: INVALID_ARGUMENT with every fault; ALREADY_EXISTS; and as `JobService.hold_machines`."""
        resource, resource_id = copy_of(request.persistent_resource), request.persistent_resource_id
        faults = list(_faults(resource, self._jobs.machine_types))
        if not _ID.fullmatch(resource_id):
            faults.insert(0, f"persistent_resource_id: expected {_ID.pattern}, found {resource_id!r:.200}.")
        if faults:
            raise InvalidArgumentError(*faults)
        resource.name = f"{by_number(request.parent)}/{_COLLECTION}/{resource_id}"
        if self._store.find(type(resource), resource.name):
            raise ApiError(Status.ALREADY_EXISTS, f"The {_KIND} {resource.name} already exists.")
        resource.create_time.GetCurrentTime()
        self._jobs.refuse_machines(resource)
        self._jobs.hold_machines(resource)
        return self._begin("CreatePersistentResource", resource, _STATE.PROVISIONING)

    def list_page(self, request: Message) -> Message:
        found = self._store.under(message_of(_KIND), f"{by_number(request.parent)}/{_COLLECTION}")
        return self._standard.page(request, [self._shown(resource) for resource in found])

    def update(self, request: Message) -> Message:
        """Resize it. Raises `ApiError`: INVALID_ARGUMENT, FAILED_PRECONDITION, NOT_FOUND, RESOURCE_EXHAUSTED."""
        changed = copy_of(self._running(request.persistent_resource.name))
        if list(request.update_mask.paths) != [_SIZE]:
            raise InvalidArgumentError(f"update_mask: expected {_SIZE}, found {request.update_mask.paths}.")
        wanted = request.persistent_resource.resource_pools
        for pool, size in zip(changed.resource_pools, wanted, strict=False):
            pool.replica_count = size.replica_count
        if faults := list(_faults(changed, self._jobs.machine_types)):
            raise InvalidArgumentError(*faults)
        self._jobs.refuse_machines(changed)
        self._jobs.hold_machines(changed)
        return self._begin("UpdatePersistentResource", changed, _STATE.UPDATING)

    def delete(self, request: Message) -> Message:
        """Its jobs are cancelled first. Raises `ApiError`: NOT_FOUND, FAILED_PRECONDITION."""
        return self._begin("Delete", self._running(request.name), _STATE.STOPPING)

    def settle(self) -> None:
        """End the changes that had their time and their machines."""
        for pool in list(self._jobs.pools.values()):
            resource, is_stopping = pool.message, pool.message.state == _STATE.STOPPING
            if resource.state == _STATE.RUNNING or not is_settled(resource):
                continue
            if is_stopping and self._jobs.release_machines(resource.name):
                self._standard.end(resource.name, empty_pb2.Empty())
                self._store.remove(resource.name)
            elif not is_stopping and pool.turn.came.is_set():
                if not resource.HasField("start_time"):
                    resource.start_time.GetCurrentTime()
                self._put(resource, _STATE.RUNNING)
                self._standard.end(resource.name, resource)

    def _get(self, name: str) -> Message:
        return self._store.get(message_of(_KIND), by_number(name))

    def _running(self, name: str) -> Message:
        resource = self._get(name)
        if resource.state != _STATE.RUNNING:
            state = _STATE(resource.state).name
            raise ApiError(Status.FAILED_PRECONDITION, f"The {_KIND} {resource.name} is in state {state}.")
        return resource

    def _shown(self, resource: Message) -> Message:
        """With how many of its machines run jobs."""
        for pool in resource.resource_pools:
            pool.used_replica_count = self._jobs.pools[resource.name].capacity.slots_in_use
        return resource

    def _put(self, resource: Message, state: int) -> None:
        resource.state = state
        self._store.put(touched(resource))
        self._jobs.pools[resource.name].message = resource

    def _begin(self, method: str, resource: Message, state: int) -> Message:
        """The operation, which `settle` ends."""
        self._put(resource, state)
        return self._standard.begin(method, resource, at=resource.name)


def _faults(resource: Message, machines: MachineTypes) -> Iterator[str]:
    """One sentence for each fault of a PersistentResource.

    Source: the comments of google.cloud.aiplatform.v1.ResourcePool.
    """
    if len(resource.resource_pools) != 1:
        yield f"resource_pools: the local stack imitates resources with one pool, found {len(resource.resource_pools)}."
    for number, pool in enumerate(resource.resource_pools):
        at = f"resource_pools[{number}]"
        yield from machine_faults(pool.machine_spec, f"{at}.machine_spec", machines)
        yield from disk_faults(pool.disk_spec, f"{at}.disk_spec")
        if pool.replica_count < 1:
            yield f"{at}.replica_count: at least 1, found {pool.replica_count}."
