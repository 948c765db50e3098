"""The job that a valid request describes, in the project's terms."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import output_uri
from trainmaster.orchestrator.core.policy.admission import DEFAULT_PRIORITY
from trainmaster.orchestrator.core.policy.pools import RunPool
from trainmaster.orchestrator.core.requests.draft import Draft, Running
from trainmaster.orchestrator.core.requests.placeholders import text_with_values
from trainmaster.orchestrator.core.requests.script import CONTINUE_VARIABLE
from trainmaster.orchestrator.core.runs.job import RetryOn
from trainmaster.orchestrator.core.runs.record import RunRecord

_SNAKE = re.compile(r"_([a-z0-9])")
MAX_WAIT_S = 24 * 3600
"""With a flexible start, how long the service waits for machines if the request does not say it.

Source: Scheduling.max_wait_duration in google/cloud/aiplatform/v1/custom_job.proto
"""
START_WITHIN_S = 2 * 3600
"""How long a job may be queued, if neither its request nor the policy says it."""
FLEX_START_MARGIN_S = 15 * 60

SETTINGS: Mapping[str, str] = {
    "service_account": "serviceAccount",
    "network": "network",
    "tensorboard": "tensorboard",
    "web_access": "enableWebAccess",
    "dashboard_access": "enableDashboardAccess",
    "persistent_resource": "persistentResourceId",
    "reserved_ip_ranges": "reservedIpRanges",
    "experiment": "experiment",
    "experiment_run": "experimentRun",
    "psc_interface_config": "pscInterfaceConfig",
    "models": "models",
    "protected_artifact_location_id": "protectedArtifactLocationId",
}
"""Keys of a request whose values the job gets as they are, by the names of Vertex AI's CustomJobSpec."""
MACHINE_SETTINGS = ("tpu_topology", "gpu_partition_size", "reservation_affinity")
MOUNTS = ("nfs_mounts", "lustre_mounts")
PARTS: Mapping[str, tuple[str, ...]] = {
    "nfs_mounts": ("server", "path", "mount_point"),
    "lustre_mounts": ("instance_ip", "volume_handle", "filesystem", "mount_point"),
    "reservation_affinity": ("reservation_affinity_type", "key", "values"),
    "psc_interface_config": ("network_attachment", "dns_peering_configs"),
    "dns_peering_configs": ("domain", "target_project", "target_network"),
}
"""Keys whose values are mappings, or lists of mappings, with the keys in these, which Vertex AI writes in camelCase."""


@dataclass(frozen=True, kw_only=True)
class Accelerator:
    """Accelerators of one replica, by Vertex AI's type name."""

    type: str
    count: int


@dataclass(frozen=True, kw_only=True)
class Disk:
    """A replica's boot disk; without a type, Vertex AI chooses one that the machine can boot from."""

    type: str | None = None
    size_gb: int = 100


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


@dataclass(frozen=True, kw_only=True)
class Script:
    """A Python script that a replica runs in `image`: the path `file`, or else `module`, in the archive at `archive`, gs://.

    `image` and `archive` are empty only in a request that the service has not accepted yet.
    """

    image: str
    file: str = ""
    module: str = ""
    archive: str = ""
    launcher: str = "none"
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def words(self) -> tuple[str, ...]:
        """What Python runs."""
        return ("-m", self.module) if self.module else (self.file,)


Program = Container | PythonPackage | Script


@dataclass(frozen=True, kw_only=True)
class WorkerPool:
    """Replicas of one role, all alike. `settings` are those of MACHINE_SETTINGS and MOUNTS that the role makes."""

    replicas: int
    machine: str
    program: Program
    accelerator: Accelerator | None = None
    tpu_topology: str | None = None
    disk: Disk | None = None
    settings: Mapping[str, object] = field(default_factory=dict)


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
    """How the job is run. `timeout_s` None leaves the service's 7 days, `max_wait_s` None its 24 hours.

    Requests without a timeout get the policy's; only records of older versions and converted jobs have none.
    `start_within_s` None is START_WITHIN_S; with a flexible start, `max_wait_s` counts instead.
    `retries` further jobs follow one that was lost; Vertex AI's own restarts within a job do not count.
    """

    timeout_s: int | None = None
    restart_on_worker_restart: bool = False
    spot: bool = False
    flex_start: bool = False
    max_wait_s: int | None = None
    disable_retries: bool = False
    start_within_s: int | None = None
    retries: int = 0
    retry_on: tuple[RetryOn, ...] = (RetryOn.INFRASTRUCTURE, RetryOn.PREEMPTION)

    @property
    def longest_wait_s(self) -> int:
        """With a flexible start, the seconds for which the service looks for machines; 0: without end."""
        return MAX_WAIT_S if self.max_wait_s is None else self.max_wait_s

    @property
    def start_limit_s(self) -> int:
        """Seconds after its creation at which a job that has not started makes room for the next candidate; 0: never.

        The service itself ends a flexible start in vain, so that has a margin.
        """
        if self.flex_start:
            return self.longest_wait_s and self.longest_wait_s + FLEX_START_MARGIN_S
        return START_WITHIN_S if self.start_within_s is None else self.start_within_s


class Goal(StrEnum):
    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"


class Measurement(StrEnum):
    """Which of a trial's measurements counts."""

    BEST = "best"
    LAST = "last"


class ParameterType(StrEnum):
    DOUBLE = "double"
    INTEGER = "integer"
    CATEGORICAL = "categorical"
    DISCRETE = "discrete"


@dataclass(frozen=True, kw_only=True)
class Metric:
    id: str
    goal: Goal


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """A study and how many trials it has. `max_failed_trials` 0 leaves it to the service.

    `document` is the request's whole `tuning`; `study.py` makes Vertex AI's StudySpec of it.
    """

    metrics: tuple[Metric, ...]
    max_trials: int
    parallel_trials: int = 1
    max_failed_trials: int = 0
    measurement: Measurement = Measurement.LAST
    document: Mapping[str, object] = field(compare=False)
    """Two spellings of one study may leave out different defaults."""


@dataclass(frozen=True, kw_only=True)
class ChampionTerms:
    """By what the run's model is compared with the champion, and by how much it must be better."""

    metric: str
    goal: Goal
    margin: float = 0.0
    evaluation: str | None = None
    """What the metric was measured on, in the request's own words."""
    evaluate: Mapping[str, object] | None = None
    """The job that measures it, as the request says: core/requests/evaluation.py."""
    approve: bool = False
    """Whether a promotion waits for an order to approve it."""
    example: str | None = None
    """What the model predicts on, where the policy asks for a smoke test; None: the example.json beside it."""


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """What every dialect of the request becomes.

    `tuning` None: the program runs once. `settings` are those of SETTINGS that the request makes.
    `output_prefix_uri` None means the models bucket. `model_uri`, its placeholders unfilled, is where the program
    leaves its model; None means AIP_MODEL_DIR. `args` of programs have their placeholders, too. Of runs that
    wait, those of a higher `priority`, 0 to 100, go first.
    """

    model_name: str
    cluster: Cluster
    tuning: Tuning | None = None
    scheduling: Scheduling = field(default_factory=Scheduling)
    labels: Mapping[str, str] = field(default_factory=dict)
    output_prefix_uri: str | None = None
    model_uri: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    encryption_key: str | None = None
    champion: ChampionTerms | None = None
    experiment: str | None = None
    """The experiment of which the ended run becomes a run; one by its full name is a setting of the job instead."""
    priority: int = DEFAULT_PRIORITY

    def output_uri(self, run_id: str, models_bucket: str) -> str:
        """The run's own directory: PREFIX/MODEL_NAME/RUN_ID."""
        return output_uri(self.output_prefix_uri or f"gs://{models_bucket}", self.model_name, run_id)

    def model_uri_of(self, run_id: str) -> str | None:
        """The run's `model_uri`, without a trailing slash; `${trial}` stays."""
        return text_with_values(self.model_uri, run_id=run_id).rstrip("/") if self.model_uri else None

    @property
    def persistent_resource(self) -> str | None:
        """The id of the persistent resource whose machines run the job; None: it gets fresh ones."""
        named = self.settings.get("persistent_resource")
        return named if isinstance(named, str) else None

    @property
    def kind(self) -> JobKind:
        """The kind of job that does the work."""
        return JobKind.TUNING if self.tuning else JobKind.CUSTOM


def pools_for(spec: JobSpec, region: str, offered: Iterable[RunPool]) -> tuple[str, ...]:
    """The ids of the policy's pools that a short run prefers: in its region, with its machines, and enough of them.

    A run stays on fresh machines if it names a network, key or resource, which must be the pool's, a disk of its own,
    or Spot VMs, and if it has trials.
    """
    scheduling, pools = spec.scheduling, [pool for pool in spec.cluster.pools if pool is not None]
    bound = ("network", "reserved_ip_ranges", "persistent_resource")
    is_bound = any(key in spec.settings for key in bound) or spec.encryption_key or spec.tuning
    if is_bound or scheduling.spot or scheduling.flex_start or not scheduling.timeout_s:
        return ()
    return tuple(
        one.id
        for one in offered
        if (one.region == region and scheduling.timeout_s <= one.short_s)
        and sum(pool.replicas for pool in pools) <= one.count
        and all(_runs_on(pool, one) for pool in pools)
    )


def _runs_on(pool: WorkerPool, offered: RunPool) -> bool:
    wanted = {"type": pool.accelerator.type, "count": pool.accelerator.count} if pool.accelerator else None
    is_plain = pool.disk is None and pool.tpu_topology is None
    return is_plain and (pool.machine, wanted) == (offered.machine, offered.accelerator)


# Any: the schema validates the types; reading it again piece by piece would only repeat it.
def spec_from(document: Mapping[str, Any]) -> JobSpec:
    """The job of a request in our own dialect.

    The document is one that schemas/training_request.v1.schema.json accepts; of another, errors of any kind.
    """
    tuning, champion = document.get("tuning"), document.get("champion")
    return JobSpec(
        model_name=document["model_name"],
        cluster=_cluster(document),
        tuning=decoded(Tuning, {**tuning, "document": tuning}) if tuning else None,
        scheduling=decoded(Scheduling, document.get("scheduling", {})),
        labels=document.get("labels", {}),
        output_prefix_uri=document.get("output", {}).get("prefix_uri"),
        model_uri=document.get("model_uri"),
        settings=_settings(document),
        encryption_key=document.get("encryption_key"),
        champion=decoded(ChampionTerms, champion) if champion else None,
        experiment=None if "/" in (name := document.get("experiment") or "/") else name,
        priority=document.get("priority", DEFAULT_PRIORITY),
    )


def spec_of(record: RunRecord) -> JobSpec | None:
    """The job that the run's request asks for; None for a rejected run."""
    return None if record.request is None else spec_from(record.request.document)


def _settings(document: Mapping[str, Any]) -> Mapping[str, object]:
    """The settings that the request makes. The service names a run of an experiment EXPERIMENT-RUN, in full."""
    settings = {key: document[key] for key in SETTINGS if document.get(key)}
    if "/" not in settings.get("experiment", "/"):
        del settings["experiment"]
    run = settings.get("experiment_run")
    if run is not None and "/" not in run:
        settings["experiment_run"] = f"{settings['experiment']}-{run}"
    return settings


def _cluster(document: Mapping[str, Any]) -> Cluster:
    draft = Draft(document=document)
    more = {CONTINUE_VARIABLE: document["continue_from"]} if "continue_from" in document else {}
    pools = {
        role: _pool(document["cluster"][role], _program(draft.running_of(role), more)) for role in draft.roles
    }
    environment = document["cluster"].get("replica_environment", ReplicaEnvironment.VERTEX)
    return Cluster(**pools, replica_environment=ReplicaEnvironment(environment))


def _pool(document: Mapping[str, Any], program: Program) -> WorkerPool:
    return WorkerPool(
        replicas=document.get("count", 1),
        machine=document["machine"],
        program=program,
        accelerator=Accelerator(**document["accelerator"]) if "accelerator" in document else None,
        tpu_topology=document.get("tpu_topology"),
        disk=Disk(**document["disk"]) if "disk" in document else None,
        settings={key: document[key] for key in (*MACHINE_SETTINGS, *MOUNTS) if document.get(key)},
    )


def _program(runs: Running, more: Mapping[str, object]) -> Program:
    env = {**{name: value for name, (_, value) in runs.env.items()}, **more}
    words = {"image": runs.image, "args": list(runs.args), "env": env}
    if runs.script is not None:
        # Another key of it, as `root`, says how it was packed.
        return decoded(Script, {**runs.script, **words, "image": runs.image or ""})
    if runs.package is None:
        return decoded(Container, {**words, "command": runs.command})
    return decoded(PythonPackage, {**words, **runs.package})


def camel_case(name: str) -> str:
    return _SNAKE.sub(lambda match: match[1].upper(), name)


def in_camel_case(names: Iterable[str]) -> dict[str, str]:
    """Our keys with their names in camelCase."""
    return {name: camel_case(name) for name in names}


def same_value(value: object) -> object:
    return value


def under_names(
    document: Mapping[str, Any], keys: Mapping[str, str], write: Callable[[Any], object] = same_value
) -> dict[str, object]:
    """What the document has of the keys, under their other names, each value as `write` gives it."""
    return {theirs: write(document[ours]) for ours, theirs in keys.items() if ours in document}
