"""What a region has for jobs: quotas, stockouts and a rate of requests, read from JSON or YAML values.

quotas:
  us-central1: {NVIDIA_TESLA_T4: 2, n1-*: 8, replicas: 10, spot: {NVIDIA_TESLA_T4: 0}}
stockouts:
  - {region: us-central1, resource: NVIDIA_L4, spot: true, times: 2}
requests_per_minute: {us-central1: 60}

A resource is an accelerator type, a glob of machine types, or `replicas`. What is not named is unlimited.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from google.cloud.aiplatform_v1.types import AcceleratorType, Scheduling

from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import Message

REPLICAS = "replicas"
_SPOT = "spot"
_METRIC = "aiplatform.googleapis.com/custom_model_training_"


class BadQuotaError(ApiError):
    """A document that says no quotas; the message has a line for each thing wrong with it."""

    def __init__(self, wrong: Sequence[str]) -> None:
        super().__init__(Status.INVALID_ARGUMENT, "\n".join(wrong))


@dataclass(frozen=True, kw_only=True)
class Limit:
    """How much of a resource the jobs of a region that have not ended may hold at once."""

    region: str
    resource: str
    spot: bool
    most: int


@dataclass(frozen=True, kw_only=True)
class Stockout:
    """Jobs that are accepted and find no machines: `times` of them, or every one when None.

    `spot` says which are meant; None means both. `region` and `resource` are globs.
    """

    region: str = "*"
    resource: str = "*"
    spot: bool | None = None
    times: int | None = None


@dataclass(frozen=True, kw_only=True)
class Quota:
    """Everything that a document says."""

    limits: tuple[Limit, ...] = ()
    stockouts: tuple[Stockout, ...] = ()
    requests_per_minute: Mapping[str, int] = field(default_factory=dict)


def is_spot(spec: Message) -> bool:
    """Whether a job asks for spot machines, which have quotas of their own."""
    return bool(spec.scheduling.strategy == Scheduling.Strategy.SPOT)


def held(spec: Message, resource: str) -> int:
    """How much of a resource all replicas of a CustomJobSpec hold together."""
    total = 0
    for pool in spec.worker_pool_specs:
        machine = pool.machine_spec
        if AcceleratorType(machine.accelerator_type).name == resource:
            total += pool.replica_count * machine.accelerator_count
        elif resource == REPLICAS or fnmatchcase(machine.machine_type, resource):
            total += pool.replica_count
    return total


def uses(spec: Message, resource: str) -> bool:
    """Whether any replica asks for the resource; here a glob may also stand for accelerator types."""
    return any(
        fnmatchcase(AcceleratorType(pool.machine_spec.accelerator_type).name, resource)
        or fnmatchcase(pool.machine_spec.machine_type, resource)
        for pool in spec.worker_pool_specs
        if pool.replica_count
    )


def metric_of(limit: Limit) -> str:
    """The quota's metric as the service names it: `…_nvidia_t4_gpus`, `…_tpu_v2`, and CPUs for whatever is no accelerator.

    Source: refusals quoted in public issues, 2022 to 2024. That spot quotas are called preemptible is not confirmed.
    """
    kind = "preemptible_" if limit.spot else ""
    name = limit.resource.lower()
    if limit.resource not in AcceleratorType.__members__:
        return f"{_METRIC}{kind}cpus"
    if name.startswith("nvidia_"):
        return f"{_METRIC}{kind}nvidia_{name.removeprefix('nvidia_').removeprefix('tesla_')}_gpus"
    return f"{_METRIC}{kind}{name}"


def quota_from(document: object) -> Quota:
    """What a document says.

    Raises:
        BadQuotaError: with everything that is wrong, each thing with its path.
    """
    reading = _Reading()
    whole = reading.mapping(document, "$", ("quotas", "stockouts", "requests_per_minute"))
    limits = [
        limit
        for region, said in reading.mapping(whole.get("quotas", {}), "$.quotas").items()
        for limit in reading.limits(region, said, f"$.quotas.{region}")
    ]
    stockouts = reading.stockouts(whole.get("stockouts", []))
    rates = reading.mapping(whole.get("requests_per_minute", {}), "$.requests_per_minute")
    read_rates = {
        region: reading.count(rate, f"$.requests_per_minute.{region}") for region, rate in rates.items()
    }
    if reading.wrong:
        raise BadQuotaError(reading.wrong)
    return Quota(limits=tuple(limits), stockouts=tuple(stockouts), requests_per_minute=read_rates)


@dataclass(kw_only=True)
class _Reading:
    """A document being read; everything wrong with it goes to `wrong`."""

    wrong: list[str] = field(default_factory=list)

    def mapping(self, value: object, path: str, known: Sequence[str] = ()) -> Mapping[str, object]:
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            self.wrong.append(f"{path}: expected a mapping with names as keys, found {value!r:.80}.")
            return {}
        self.wrong += [
            f"{path}.{key}: there is no such field; known are {', '.join(known)}."
            for key in value
            if known and key not in known
        ]
        return value

    def count(self, value: object, path: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            return value
        self.wrong.append(f"{path}: expected a whole number from 0 on, found {value!r:.80}.")
        return 0

    def limits(self, region: str, said: object, path: str) -> list[Limit]:
        resources = dict(self.mapping(said, path))
        spot = self.mapping(resources.pop(_SPOT, {}), f"{path}.{_SPOT}")
        return [
            *self._limits(region, resources, path, spot=False),
            *self._limits(region, spot, f"{path}.{_SPOT}", spot=True),
        ]

    def _limits(self, region: str, said: Mapping[str, object], path: str, *, spot: bool) -> list[Limit]:
        self.wrong += [
            f"{path}.{name}: no accelerator of Vertex AI has this name; like NVIDIA_TESLA_T4, n1-* or {REPLICAS}."
            for name in said
            if name.isupper() and name not in AcceleratorType.__members__
        ]
        return [
            Limit(region=region, resource=name, spot=spot, most=self.count(most, f"{path}.{name}"))
            for name, most in said.items()
        ]

    def stockouts(self, value: object) -> list[Stockout]:
        if not isinstance(value, list):
            self.wrong.append(f"$.stockouts: expected a list, found {value!r:.80}.")
            return []
        return [self._stockout(each, f"$.stockouts[{at}]") for at, each in enumerate(value)]

    def _stockout(self, value: object, path: str) -> Stockout:
        said = self.mapping(value, path, ("region", "resource", "spot", "times"))
        for name in ("region", "resource"):
            if not isinstance(said.get(name, "*"), str):
                self.wrong.append(f"{path}.{name}: expected a glob, found {said[name]!r:.80}.")
        self._check_stockout_resource(said.get("resource", "*"), f"{path}.resource")
        spot, times = said.get("spot"), said.get("times")
        if spot is not None and not isinstance(spot, bool):
            self.wrong.append(f"{path}.spot: expected true or false, found {spot!r:.80}.")
        return Stockout(
            region=str(said.get("region", "*")),
            resource=str(said.get("resource", "*")),
            spot=spot if isinstance(spot, bool) else None,
            times=None if times is None else self.count(times, f"{path}.times"),
        )

    def _check_stockout_resource(self, name: object, path: str) -> None:
        """Refuse what no job can ask for, where the stockout would never strike."""
        if name == REPLICAS:
            self.wrong.append(
                f"{path}: stockouts are of accelerators or machine types, found {name!r}; left out, it means every job."
            )
        elif (
            isinstance(name, str)
            and name.isupper()
            and not any(fnmatchcase(known, name) for known in AcceleratorType.__members__)
        ):
            self.wrong.append(
                f"{path}: no accelerator of Vertex AI has the name {name!r}; like NVIDIA_TESLA_T4 or NVIDIA_*."
            )
