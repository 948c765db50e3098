"""The job that a sound request describes, in our own words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, assert_never

from trainmaster.orchestrator.core.names import JobKind
from trainmaster.orchestrator.core.policy.admission import DEFAULT_PRIORITY
from trainmaster.orchestrator.core.requests.programs import names_program
from trainmaster.orchestrator.core.requests.tuning import Goal, Tuning, tuning_from


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
class NfsMount:
    """A share of an NFS server, mounted at /mnt/nfs/`mount_point`."""

    server: str
    path: str
    mount_point: str


@dataclass(frozen=True, kw_only=True)
class Container:
    """What a replica runs. An empty command leaves the image's own."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class PythonPackage:
    """Packages that a replica installs in `image`, and the module of them that it runs."""

    image: str
    uris: tuple[str, ...]
    module: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)


Program = Container | PythonPackage


@dataclass(frozen=True, kw_only=True)
class WorkerPool:
    """Replicas of one role, all alike."""

    replicas: int
    machine: str
    program: Program
    accelerator: Accelerator | None = None
    tpu_topology: str | None = None
    disk: Disk | None = None
    nfs_mounts: tuple[NfsMount, ...] = ()


class ReplicaEnvironment(StrEnum):
    """Whose TF_CONFIG and CLUSTER_SPEC the program reads."""

    VERTEX = "vertex"
    AI_PLATFORM = "ai_platform"


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """The roles, in the order of Vertex AI's worker pools; an absent role keeps its place.

    Source: https://cloud.google.com/vertex-ai/docs/training/distributed-training
    """

    chief: WorkerPool
    workers: WorkerPool | None = None
    parameter_servers: WorkerPool | None = None
    evaluators: WorkerPool | None = None
    replica_environment: ReplicaEnvironment = ReplicaEnvironment.VERTEX

    @property
    def pools(self) -> tuple[WorkerPool | None, ...]:
        """Pools 0 to 3, without the absent ones at the end."""
        pools: list[WorkerPool | None] = [self.chief, self.workers, self.parameter_servers, self.evaluators]
        while pools[-1] is None:
            pools.pop()
        return tuple(pools)


@dataclass(frozen=True, kw_only=True)
class Scheduling:
    """How the job is run. `timeout_s` None leaves the service's 7 days, `max_wait_s` None its 24 hours."""

    timeout_s: int | None = None
    restart_on_worker_restart: bool = False
    spot: bool = False
    flex_start: bool = False
    max_wait_s: int | None = None
    disable_retries: bool = False


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who gets at the replicas, and what these get at, beyond the job's account."""

    web: bool = False
    dashboard: bool = False
    encryption_key: str | None = None
    persistent_resource: str | None = None
    reserved_ip_ranges: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The Vertex AI experiment that the job belongs to, and its run."""

    name: str
    run: str | None = None


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
    """What every dialect of the request becomes. `output_prefix_uri` None means the models bucket.

    Of runs that wait, those of a higher `priority`, 0 to 100, go first.
    """

    model_name: str
    cluster: Cluster
    work: Work = field(default_factory=Once)
    scheduling: Scheduling = field(default_factory=Scheduling)
    labels: Mapping[str, str] = field(default_factory=dict)
    output_prefix_uri: str | None = None
    service_account: str | None = None
    network: str | None = None
    tensorboard: str | None = None
    access: Access = field(default_factory=Access)
    experiment: Experiment | None = None
    champion: ChampionTerms | None = None
    priority: int = DEFAULT_PRIORITY

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
    return JobSpec(
        model_name=document["model_name"],
        cluster=_cluster(document),
        work=tuning_from(document["tuning"]) if "tuning" in document else Once(),
        scheduling=Scheduling(**document.get("scheduling", {})),
        labels=document.get("labels", {}),
        output_prefix_uri=document.get("output", {}).get("prefix_uri"),
        service_account=document.get("service_account"),
        network=document.get("network"),
        tensorboard=document.get("tensorboard"),
        access=Access(
            web=document.get("web_access", False),
            dashboard=document.get("dashboard_access", False),
            encryption_key=document.get("encryption_key"),
            persistent_resource=document.get("persistent_resource"),
            reserved_ip_ranges=tuple(document.get("reserved_ip_ranges", ())),
        ),
        experiment=Experiment(name=document["experiment"], run=document.get("experiment_run"))
        if "experiment" in document
        else None,
        champion=_terms(document["champion"]) if "champion" in document else None,
        priority=document.get("priority", DEFAULT_PRIORITY),
    )


def _terms(document: Mapping[str, Any]) -> ChampionTerms:
    return ChampionTerms(
        metric=document["metric"], goal=Goal(document["goal"]), margin=float(document.get("margin", 0))
    )


def _cluster(document: Mapping[str, Any]) -> Cluster:
    cluster = document["cluster"]
    chief = cluster["chief"]

    def role(name: str) -> WorkerPool | None:
        if name not in cluster:
            return None
        return _pool(cluster[name], _program(cluster[name], document, chief), replicas=cluster[name]["count"])

    return Cluster(
        chief=_pool(chief, _program(chief, document, chief), replicas=1),
        workers=role("workers"),
        parameter_servers=role("parameter_servers"),
        evaluators=role("evaluators"),
        replica_environment=ReplicaEnvironment(cluster.get("replica_environment", ReplicaEnvironment.VERTEX)),
    )


def _pool(document: Mapping[str, Any], program: Program, *, replicas: int) -> WorkerPool:
    return WorkerPool(
        replicas=replicas,
        machine=document["machine"],
        program=program,
        accelerator=Accelerator(**document["accelerator"]) if "accelerator" in document else None,
        tpu_topology=document.get("tpu_topology"),
        disk=Disk(**document["disk"]) if "disk" in document else None,
        nfs_mounts=tuple(NfsMount(**mount) for mount in document.get("nfs_mounts", ())),
    )


def _program(role: Mapping[str, Any], document: Mapping[str, Any], chief: Mapping[str, Any]) -> Program:
    """What the role runs.

    Its own image or packages, which take nothing from elsewhere; else the chief's, with the request's command,
    args and env where the role has none of its own. Variables of both are there, the role's own win.
    """
    if names_program(role):
        return _program_in(
            role, args=role.get("args", ()), command=role.get("command", ()), env=role.get("env", {})
        )
    return _program_in(
        chief if names_program(chief) else document,
        args=role.get("args", document.get("args", ())),
        command=role.get("command", document.get("command", ())),
        env={**document.get("env", {}), **role.get("env", {})},
    )


def _program_in(
    document: Mapping[str, Any], *, args: Sequence[str], command: Sequence[str], env: Mapping[str, str]
) -> Program:
    if "python_package" in document:
        package = document["python_package"]
        return PythonPackage(
            image=package["executor_image"],
            uris=tuple(package["uris"]),
            module=package["module"],
            args=tuple(args),
            env=env,
        )
    return Container(image=document["image"], command=tuple(command), args=tuple(args), env=env)
