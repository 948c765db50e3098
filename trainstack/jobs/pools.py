"""The machines that persistent resources hold, of which the jobs that name one take theirs."""

from collections.abc import Iterator

from google.cloud.aiplatform_v1.types.custom_job import CustomJobSpec

from trainstack.jobs.capacity import Capacity, SlotTurn
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.resource.machines import MachineTypes, Message, disk_faults, machine_faults

_MACHINE_FIELDS = ("machine_type", "accelerator_type", "accelerator_count", "tpu_topology")


def resource_faults(resource: Message, machines: MachineTypes) -> Iterator[str]:
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


class MachinePool:
    """The machines of one persistent resource: `turn` is for their places on this machine, its jobs share `capacity`."""

    copies = 1

    def __init__(self, resource: Message) -> None:
        self.resource, self.location = resource, str(resource.name.split("/")[3])
        self.turn, self.capacity = SlotTurn(self.count), Capacity(self.count)

    @property
    def name(self) -> str:
        return str(self.resource.name)

    @property
    def message(self) -> Message:
        return self.resource

    @property
    def count(self) -> int:
        return int(self.resource.resource_pools[0].replica_count)

    @property
    def spec(self) -> Message:
        """A CustomJobSpec of these machines, as quotas count them."""
        spec = CustomJobSpec.pb(CustomJobSpec())
        machine = self.resource.resource_pools[0].machine_spec
        spec.worker_pool_specs.add(machine_spec=machine, replica_count=self.count)
        return spec

    def job_faults(self, job: VertexJob) -> Iterator[str]:
        """One sentence for each reason why the job can't run on these machines.

        Source: https://cloud.google.com/vertex-ai/docs/training/persistent-resource-train and the comments of
        CustomJobSpec.persistent_resource_id.
        """
        ours, (pool,) = self.resource.name, self.resource.resource_pools
        for number, wanted in enumerate(job.spec.worker_pool_specs):
            if wanted.replica_count and any(
                getattr(wanted.machine_spec, name) != getattr(pool.machine_spec, name)
                for name in _MACHINE_FIELDS
            ):
                yield f"worker_pool_specs[{number}].machine_spec: no pool of {ours} has such machines."
        if (count := len(job.replicas)) > self.count:
            yield f"worker_pool_specs: {count} replicas, but {ours} has {self.count} machines."
        if job.spec.network != self.resource.network:
            yield f"network: expected that of {ours}, {self.resource.network!r}, found {job.spec.network!r}."
        if job.message.encryption_spec != self.resource.encryption_spec:
            yield f"encryption_spec: expected that of {ours}."


def resource_name(job: VertexJob) -> str:
    """The name of the persistent resource on which the job runs; empty for none."""
    resource_id = job.spec.persistent_resource_id
    return f"{job.parent}/persistentResources/{resource_id}" if resource_id else ""
