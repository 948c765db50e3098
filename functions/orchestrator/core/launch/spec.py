"""3. The job that a sound request describes, in our own words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from orchestrator.core.names import JobKind
from orchestrator.core.tuning import Goal, Tuning, tuning_from


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """Accelerators of one replica, by Vertex AI's type name."""

    type: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A replica's boot disk; the defaults are Vertex AI's."""

    type: str = "pd-ssd"
    size_gb: int = 100


@dataclass(frozen=True, kw_only=True)
class WorkerPool:
    """Replicas of one role, all alike."""

    replicas: int
    machine: str
    accelerator: Accelerator | None = None
    disk: Disk | None = None


@dataclass(frozen=True, kw_only=True)
class Container:
    """What every replica runs. An empty command leaves the image's own."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The roles, in the order of Vertex AI's worker pools; an absent role keeps its place.

    Source: https://cloud.google.com/vertex-ai/docs/training/distributed-training
    """

    chief: WorkerPool
    workers: WorkerPool | None = None
    parameter_servers: WorkerPool | None = None
    evaluators: WorkerPool | None = None

    @property
    def pools(self) -> tuple[WorkerPool | None, ...]:
        """Pools 0 to 3, without the absent ones at the end."""
        pools: list[WorkerPool | None] = [self.chief, self.workers, self.parameter_servers, self.evaluators]
        while pools[-1] is None:
            pools.pop()
        return tuple(pools)


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """How the job is run. `timeout_s` None leaves the service's 7 days."""

    timeout_s: int | None = None
    restart_on_worker_restart: bool = False
    spot: bool = False


@dataclass(frozen=True, kw_only=True)
class Once:
    """The program runs once: a custom job."""


Work = Once | Tuning
"""What is done with the program: run once, or in trials."""


@dataclass(frozen=True, kw_only=True)
class ChampionTerms:
    """By what the run's model is compared with the champion, and by how much it must be better."""

    metric: str
    goal: Goal
    margin: float = 0.0


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """What every dialect of the request becomes. `output_prefix_uri` None means the models bucket."""

    model_name: str
    container: Container
    cluster: Cluster
    work: Work = field(default_factory=Once)
    scheduling: Scheduling = field(default_factory=Scheduling)
    labels: Mapping[str, str] = field(default_factory=dict)
    output_prefix_uri: str | None = None
    service_account: str | None = None
    network: str | None = None
    tensorboard: str | None = None
    champion: ChampionTerms | None = None

    @property
    def kind(self) -> JobKind:
        """The kind of job that does the work."""
        match self.work:
            case Once():
                return JobKind.CUSTOM
            case Tuning():
                return JobKind.TUNING
            case _:
                assert_never(self.work)


# Any: the schema vouches for the types; reading it again piece by piece would only repeat it.
def spec_from(document: Mapping[str, Any]) -> JobSpec:
    """The job of a request in our own dialect.

    The document is one that schemas/training_request.v1.schema.json accepts; of another, errors of any kind.
    """
    cluster = document["cluster"]
    return JobSpec(
        model_name=document["model_name"],
        container=Container(
            image=document["image"],
            command=tuple(document.get("command", ())),
            args=tuple(document.get("args", ())),
            env=document.get("env", {}),
        ),
        cluster=Cluster(
            chief=_pool(cluster["chief"], replicas=1),
            workers=_pool(cluster["workers"], replicas=cluster["workers"]["count"])
            if "workers" in cluster
            else None,
        ),
        work=tuning_from(document["tuning"]) if "tuning" in document else Once(),
        scheduling=Scheduling(**document.get("scheduling", {})),
        labels=document.get("labels", {}),
        output_prefix_uri=document.get("output", {}).get("prefix_uri"),
        service_account=document.get("service_account"),
        network=document.get("network"),
        tensorboard=document.get("tensorboard"),
        champion=_terms(document["champion"]) if "champion" in document else None,
    )


def _terms(document: Mapping[str, Any]) -> ChampionTerms:
    return ChampionTerms(
        metric=document["metric"], goal=Goal(document["goal"]), margin=float(document.get("margin", 0))
    )


def _pool(document: Mapping[str, Any], *, replicas: int) -> WorkerPool:
    return WorkerPool(
        replicas=replicas,
        machine=document["machine"],
        accelerator=Accelerator(**document["accelerator"]) if "accelerator" in document else None,
        disk=Disk(**document["disk"]) if "disk" in document else None,
    )
