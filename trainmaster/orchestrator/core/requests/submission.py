"""The request value that Vertex AI is sent: everything about a submission, to print and compare.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
and …/projects.locations.hyperparameterTuningJobs
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from trainmaster.orchestrator.core.names import MODEL_LABEL, RUN_LABEL, JobKind, location_name, output_uri
from trainmaster.orchestrator.core.requests.spec import (
    Container,
    JobSpec,
    Once,
    Program,
    PythonPackage,
    ReplicaEnvironment,
    Scheduling,
    WorkerPool,
)
from trainmaster.orchestrator.core.requests.study import study_spec
from trainmaster.orchestrator.core.requests.tuning import Tuning

REPLICA_ENVIRONMENT = "TRAINMASTER_REPLICA_ENVIRONMENT"
"""The variable that asks for another TF_CONFIG than Vertex AI's: docs/contracts.md."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where runs are submitted, and where they write and as whom they run unless they say otherwise.

    Without a `service_account` in either, a job runs as Vertex AI's Custom Code Service Agent, whose role reaches
    every bucket of its project: https://cloud.google.com/vertex-ai/docs/general/custom-service-account
    """

    project: str
    region: str
    models_bucket: str
    service_account: str | None = None


@dataclass(frozen=True, kw_only=True)
class Submission:
    """`POST {parent}/{kind}` with this JSON body, its keys as the REST API spells them."""

    run_id: str
    parent: str
    kind: JobKind
    body: Mapping[str, object]


def output_uri_of(run_id: str, spec: JobSpec, target: Target) -> str:
    """The run's own directory: PREFIX/MODEL_NAME/RUN_ID."""
    prefix = spec.output_prefix_uri or f"gs://{target.models_bucket}"
    return output_uri(prefix, spec.model_name, run_id)


def submission_of(run_id: str, spec: JobSpec, target: Target) -> Submission:
    """The one submission of this run; the same run and spec give the same value."""
    job_spec: dict[str, object] = {
        "workerPoolSpecs": [_pool(pool, spec.cluster.replica_environment) for pool in spec.cluster.pools],
        "baseOutputDirectory": {"outputUriPrefix": output_uri_of(run_id, spec, target)},
    }
    optional = {
        "scheduling": _scheduling(spec.scheduling),
        "serviceAccount": spec.service_account or target.service_account,
        "network": spec.network,
        "tensorboard": spec.tensorboard,
        "enableWebAccess": spec.access.web,
        "enableDashboardAccess": spec.access.dashboard,
        "persistentResourceId": spec.access.persistent_resource,
        "reservedIpRanges": list(spec.access.reserved_ip_ranges),
        "experiment": spec.experiment and spec.experiment.name,
        "experimentRun": spec.experiment and spec.experiment.run,
    }
    job_spec |= {key: value for key, value in optional.items() if value}
    key = spec.access.encryption_key
    return Submission(
        run_id=run_id,
        parent=location_name(target.project, target.region),
        kind=spec.kind,
        body={
            "displayName": run_id,
            **_work(spec, job_spec),
            "labels": {**spec.labels, RUN_LABEL: run_id, MODEL_LABEL: spec.model_name},
            **({"encryptionSpec": {"kmsKeyName": key}} if key else {}),
        },
    )


def _work(spec: JobSpec, job_spec: Mapping[str, object]) -> dict[str, object]:
    match spec.work:
        case Once():
            return {"jobSpec": job_spec}
        case Tuning() as tuning:
            return {
                "studySpec": study_spec(tuning),
                "maxTrialCount": tuning.max_trials,
                "parallelTrialCount": tuning.parallel_trials,
                "maxFailedTrialCount": tuning.max_failed_trials,
                "trialJobSpec": job_spec,
            }
        case _:
            assert_never(spec.work)


def _pool(pool: WorkerPool | None, environment: ReplicaEnvironment) -> dict[str, object]:
    if pool is None:
        return {}
    machine: dict[str, object] = {"machineType": pool.machine}
    if pool.accelerator:
        machine |= {"acceleratorType": pool.accelerator.type, "acceleratorCount": pool.accelerator.count}
    if pool.tpu_topology:
        machine["tpuTopology"] = pool.tpu_topology
    fields: dict[str, object] = {
        "machineSpec": machine,
        "replicaCount": str(pool.replicas),  # int64 travels as a string
        **_program(pool.program, environment),
    }
    if pool.disk:
        fields["diskSpec"] = {"bootDiskType": pool.disk.type, "bootDiskSizeGb": pool.disk.size_gb}
    if pool.nfs_mounts:
        fields["nfsMounts"] = [
            {"server": mount.server, "path": mount.path, "mountPoint": mount.mount_point}
            for mount in pool.nfs_mounts
        ]
    return fields


def _program(program: Program, environment: ReplicaEnvironment) -> dict[str, object]:
    fields: dict[str, object] = {}
    if program.args:
        fields["args"] = list(program.args)
    # In the request's own order: $(NAME) in a value stands for a variable before it.
    env = [{"name": name, "value": value} for name, value in program.env.items()]
    if environment is not ReplicaEnvironment.VERTEX:
        env.append({"name": REPLICA_ENVIRONMENT, "value": str(environment)})
    if env:
        fields["env"] = env
    match program:
        case Container():
            command = {"command": list(program.command)} if program.command else {}
            return {"containerSpec": {"imageUri": program.image, **command, **fields}}
        case PythonPackage():
            package = {
                "executorImageUri": program.image,
                "packageUris": list(program.uris),
                "pythonModule": program.module,
            }
            return {"pythonPackageSpec": {**package, **fields}}
        case _:
            assert_never(program)


def _scheduling(scheduling: Scheduling) -> dict[str, object]:
    fields: dict[str, object] = {}
    if scheduling.timeout_s is not None:
        fields["timeout"] = f"{scheduling.timeout_s}s"
    if scheduling.restart_on_worker_restart:
        fields["restartJobOnWorkerRestart"] = True
    if scheduling.disable_retries:
        fields["disableRetries"] = True
    if scheduling.spot:
        fields["strategy"] = "SPOT"
    if scheduling.flex_start:
        fields["strategy"] = "FLEX_START"
    if scheduling.max_wait_s is not None:
        fields["maxWaitDuration"] = f"{scheduling.max_wait_s}s"
    return fields
