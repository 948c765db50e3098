"""Replica slots on this machine, persistent resources, and a region's quotas: parsed from JSON or YAML values, then applied.

quotas:
  us-central1: {NVIDIA_TESLA_T4: 2, n1-*: 8, replicas: 10, spot: {NVIDIA_TESLA_T4: 0}}

A resource is an accelerator type, a glob of machine types, or `replicas`. Any other resource is unlimited.
"""

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeAlias

from google.cloud.aiplatform_v1.types.accelerator_type import AcceleratorType
from google.cloud.aiplatform_v1.types.custom_job import CustomJobSpec, Scheduling

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.injections.active import JOBS, Injection, InjectionKind, Injections
from trainstack.jobs.resource.job import VertexJob
from trainstack.jobs.resource.machines import Message
from trainstack.reading import Reading


@dataclass(frozen=True, eq=False)
class SlotTurn:
    """A place in the queue for `count` slots, and the slots themselves once it `came`."""

    count: int
    came: asyncio.Event = field(default_factory=asyncio.Event)


class Capacity:
    """At most `replicas` slots; a job takes all its replicas' slots together, first come, first served.

    Smaller jobs do not overtake a large job at the head of the queue: it might never start.
    """

    def __init__(self, replicas: int) -> None:
        self.replicas = replicas
        self._line: deque[SlotTurn] = deque()
        self._taken: set[SlotTurn] = set()

    def has_room_for(self, count: int) -> bool:
        """Whether `line_up(count)` would get its slots at once."""
        return not self._line and count <= self._free

    def line_up(self, count: int) -> SlotTurn:
        """Queue for `count` slots, at most `replicas`. The turn must be released, whether it came or not."""
        turn = SlotTurn(count)
        self._line.append(turn)
        self._admit()
        return turn

    def release(self, turn: SlotTurn) -> None:
        """Free the slots, or leave the queue. Safe to call twice."""
        if turn in self._line:
            self._line.remove(turn)
        self._taken.discard(turn)
        self._admit()

    def resize(self, replicas: int) -> None:
        """Have more or fewer slots from now on; those that are taken stay so."""
        self.replicas = replicas
        self._admit()

    @property
    def slots_in_use(self) -> int:
        return sum(turn.count for turn in self._taken)

    @property
    def _free(self) -> int:
        return self.replicas - self.slots_in_use

    def _admit(self) -> None:
        while self._line and self._line[0].count <= self._free:
            turn = self._line.popleft()
            self._taken.add(turn)
            turn.came.set()


class MachinePool:
    """The machines of a persistent resource, `message`: `turn` is for their places on this machine, its jobs share `capacity`."""

    copies = 1

    def __init__(self, resource: Message) -> None:
        self.message, self.location = resource, str(resource.name.split("/")[3])
        self.turn, self.capacity = SlotTurn(self.count), Capacity(self.count)

    @property
    def name(self) -> str:
        return str(self.message.name)

    @property
    def count(self) -> int:
        return int(self.message.resource_pools[0].replica_count)

    @property
    def spec(self) -> Message:
        """A CustomJobSpec of these machines, as quotas count them."""
        spec = CustomJobSpec.pb(CustomJobSpec())
        machine = self.message.resource_pools[0].machine_spec
        spec.worker_pool_specs.add(machine_spec=machine, replica_count=self.count)
        return spec

    def job_faults(self, job: VertexJob) -> Iterator[str]:
        """One sentence for each reason why the job can't run on these machines.

        Source: https://cloud.google.com/vertex-ai/docs/training/persistent-resource-train and the comments of
        CustomJobSpec.persistent_resource_id.
        """
        ours, (pool,) = self.message.name, self.message.resource_pools
        for number, wanted in enumerate(job.spec.worker_pool_specs):
            if wanted.replica_count and any(
                getattr(wanted.machine_spec, name) != getattr(pool.machine_spec, name)
                for name in _MACHINE_FIELDS
            ):
                yield f"worker_pool_specs[{number}].machine_spec: no pool of {ours} has such machines."
        if (count := len(job.replicas)) > self.count:
            yield f"worker_pool_specs: {count} replicas, but {ours} has {self.count} machines."
        if job.spec.network != self.message.network:
            yield f"network: expected that of {ours}, {self.message.network!r}, found {job.spec.network!r}."
        if job.message.encryption_spec != self.message.encryption_spec:
            yield f"encryption_spec: expected that of {ours}."


Holder: TypeAlias = VertexJob | MachinePool
"""What holds machines of a region."""


def resource_name(job: VertexJob) -> str:
    """The name of the persistent resource on which the job runs; empty for none."""
    resource_id = job.spec.persistent_resource_id
    return f"{job.parent}/persistentResources/{resource_id}" if resource_id else ""


REPLICAS = "replicas"
SPOT, STANDARD = "spot", "standard"
_MACHINE_FIELDS = ("machine_type", "accelerator_type", "accelerator_count", "tpu_topology")
NAME_MAX_CHARS = 200
"""Of a region and of a resource, which are globs: matching one takes time that grows with the square of its length."""
_OF_MACHINES = (InjectionKind.STOCKOUT, InjectionKind.HOLD_QUEUED, InjectionKind.HOLD_PENDING)
"""What happens while the service looks for a job's machines."""
_METRIC = "aiplatform.googleapis.com/custom_model_training_"


@dataclass(frozen=True, kw_only=True)
class QuotaLimit:
    """How much of a resource a region's unfinished jobs may hold together."""

    region: str
    resource: str
    spot: bool
    most: int


Quota: TypeAlias = tuple[QuotaLimit, ...]
"""A parsed document."""


def is_spot(spec: Message) -> bool:
    """Whether a job requests spot machines, which have separate quotas."""
    return bool(spec.scheduling.strategy == Scheduling.Strategy.SPOT)


def amount_held(spec: Message, resource: str) -> int:
    """How much of a resource all replicas of a CustomJobSpec hold together."""
    total = 0
    for pool in spec.worker_pool_specs:
        machine = pool.machine_spec
        if _accelerator_of(machine) == resource:
            total += pool.replica_count * machine.accelerator_count
        elif resource == REPLICAS or fnmatchcase(machine.machine_type, resource):
            total += pool.replica_count
    return total


def subjects_of(job: Holder) -> tuple[str, ...]:
    """What an injection's `match` is compared with: the job's names, its labels, and its machines.

    Of machines and accelerators `us-central1/NVIDIA_L4`, and with `/spot` or `/standard` behind it.
    """
    kind = SPOT if is_spot(job.spec) else STANDARD
    machines = [pool.machine_spec for pool in job.spec.worker_pool_specs if pool.replica_count]
    resources = [machine.machine_type for machine in machines] + [*map(_accelerator_of, machines)]
    places = [f"{job.location}/{resource}" for resource in dict.fromkeys(filter(None, resources))]
    labels = [f"{key}={value}" for key, value in job.message.labels.items()]
    return (
        job.name,
        job.message.display_name,
        *places,
        *(f"{place}/{kind}" for place in places),
        *labels,
    )


def metric_of(resource: str, *, spot: bool) -> str:
    """The quota's metric as the service names it: `…_nvidia_t4_gpus`, `…_tpu_v2`, and CPUs for anything that is not an accelerator.

    Source: refusals quoted in public issues, 2022 to 2024. The name `preemptible` for spot quotas is
    unconfirmed.
    """
    kind, name = "preemptible_" if spot else "", resource.lower()
    if resource not in AcceleratorType.__members__:
        return f"{_METRIC}{kind}cpus"
    if name.startswith("nvidia_"):
        return f"{_METRIC}{kind}nvidia_{name.removeprefix('nvidia_').removeprefix('tesla_')}_gpus"
    return f"{_METRIC}{kind}{name}"


def quota_from(document: object) -> Quota:
    """Parse a document.

    Raises:
        InvalidArgumentError: with every fault, each with its path.
    """
    reading = Reading()
    whole = reading.mapping(document, "$", known=("quotas",))
    quotas = reading.mapping(whole.get("quotas", {}), "$.quotas")
    limits = tuple(
        limit
        for region, region_limits in quotas.items()
        for limit in _limits(reading, region, region_limits, f"$.quotas.{region}")
    )
    if reading.wrong:
        raise InvalidArgumentError(*reading.wrong)
    return limits


def _limits(reading: Reading, region: str, limits: object, path: str) -> Iterator[QuotaLimit]:
    resources = dict(reading.mapping(limits, path))
    on_spot = reading.mapping(resources.pop(SPOT, {}), f"{path}.{SPOT}")
    for spot, where, named in ((False, path, resources), (True, f"{path}.{SPOT}", on_spot)):
        for name, most in named.items():
            reading.expect(
                len(name) <= NAME_MAX_CHARS, where, f"names of at most {NAME_MAX_CHARS} characters", name
            )
            if name.isupper() and name not in AcceleratorType.__members__:
                reading.wrong.append(no_accelerator(name, f"{where}.{name}", f"n1-* or {REPLICAS}"))
            yield QuotaLimit(
                region=region, resource=name, spot=spot, most=reading.count(most, f"{where}.{name}")
            )


def no_accelerator(name: object, path: str, or_like: str) -> str:
    """The fault of a document that names an unknown one."""
    return f"{path}: Vertex AI has no accelerator named {name!r}; expected a name like NVIDIA_TESLA_T4, {or_like}."


class Supply:
    """The supply of one stack's regions: quotas, and what injections do to jobs. Accepted jobs outlive a change of the quota."""

    def __init__(self, quota: Quota = (), injections: Injections | None = None) -> None:
        self.quota, self.injections = quota, injections or Injections()

    def refuse_over_quota(self, job: Holder, *, going: Iterable[Holder]) -> None:
        """Refuse a job, or a persistent resource, for which those that there are, `going`, leave too little, or that an injection refuses.

        Raises:
            ApiError: RESOURCE_EXHAUSTED, with every exceeded metric.
        """
        region, spot = job.location, is_spot(job.spec)
        here = [other for other in going if other.location == region and is_spot(other.spec) == spot]
        exceeded = [
            limit.resource
            for limit in self.quota
            if limit.region == region and limit.spot == spot and _exceeds(limit, job, here)
        ]
        if not exceeded and self.strike(job, InjectionKind.OVER_QUOTA):
            machines = [pool.machine_spec for pool in job.spec.worker_pool_specs]
            exceeded = [_accelerator_of(machine) or machine.machine_type for machine in machines]
        if exceeded:
            metrics = ", ".join(dict.fromkeys(metric_of(resource, spot=spot) for resource in exceeded))
            raise ApiError(
                Status.RESOURCE_EXHAUSTED, f"The following quota metrics exceed quota limits: {metrics}"
            )

    def strike(self, job: Holder, kind: InjectionKind) -> Injection | None:
        """The injection of this kind that strikes the job; counted. A persistent resource has its machines already."""
        if job.spec.persistent_resource_id and kind in _OF_MACHINES:
            return None
        return self.injections.strike(JOBS, subjects_of(job), kind)


def _accelerator_of(machine: Message) -> str:
    """Empty for a machine without one."""
    return AcceleratorType(machine.accelerator_type).name if machine.accelerator_type else ""


def _exceeds(limit: QuotaLimit, job: Holder, others: Iterable[Holder]) -> bool:
    asked = job.copies * amount_held(job.spec, limit.resource)
    return asked > 0 and asked + sum(amount_held(other.spec, limit.resource) for other in others) > limit.most
