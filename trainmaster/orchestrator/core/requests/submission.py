"""The request value that Vertex AI is sent: everything about a submission, to print and compare.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
and …/projects.locations.hyperparameterTuningJobs
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from trainmaster.orchestrator.core.job_names import JobKind, location_name
from trainmaster.orchestrator.core.names import DEPLOYMENT_LABEL, MODEL_LABEL, RUN_LABEL
from trainmaster.orchestrator.core.requests.placeholders import text_with_values
from trainmaster.orchestrator.core.requests.script import VARIABLE, run_command
from trainmaster.orchestrator.core.requests.spec import (
    MACHINE_SETTINGS,
    MOUNTS,
    PARTS,
    SETTINGS,
    Container,
    JobSpec,
    Program,
    PythonPackage,
    ReplicaEnvironment,
    Scheduling,
    Script,
    WorkerPool,
    in_camel_case,
    under_names,
)
from trainmaster.orchestrator.core.requests.study import study_spec

REPLICA_ENVIRONMENT = "TRAINMASTER_REPLICA_ENVIRONMENT"
"""The variable that asks for another TF_CONFIG than Vertex AI's: docs/reference/contracts.md."""
DURATIONS = {"timeout_s": "timeout", "max_wait_s": "maxWaitDuration"}
FLAGS = {"restart_on_worker_restart": "restartJobOnWorkerRestart", "disable_retries": "disableRetries"}
STRATEGIES = {"spot": "SPOT", "flex_start": "FLEX_START"}
DISK = {"type": "bootDiskType", "size_gb": "bootDiskSizeGb"}


@dataclass(frozen=True, kw_only=True)
class Target:
    """Where runs are submitted, and where they write and as whom they run unless they say otherwise.

    Without a `service_account` in either, a job runs as Vertex AI's Custom Code Service Agent, whose role reaches
    every bucket of its project: https://cloud.google.com/vertex-ai/docs/general/custom-service-account

    `deployment` is the deployment's name; several in one project have different ones, and one may have none.
    """

    project: str
    region: str
    models_bucket: str
    service_account: str | None = None
    deployment: str = ""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """`POST {parent}/{kind}` with this JSON body, its keys as the REST API spells them."""

    run_id: str
    parent: str
    kind: JobKind
    body: Mapping[str, object]


def submission_of(run_id: str, spec: JobSpec, target: Target) -> Submission:
    """The one submission of this run; the same run and spec give the same value."""
    environment = spec.cluster.replica_environment
    own = {DEPLOYMENT_LABEL: target.deployment} if target.deployment else {}
    job_spec: dict[str, object] = {
        "workerPoolSpecs": [_pool(pool, environment, run_id) for pool in spec.cluster.pools],
        "baseOutputDirectory": {"outputUriPrefix": spec.output_uri(run_id, target.models_bucket)},
    }
    optional = {
        "scheduling": _scheduling(spec.scheduling),
        "serviceAccount": target.service_account,
        **_in_api_form(spec.settings, SETTINGS),
    }
    job_spec |= {key: value for key, value in optional.items() if value}
    return Submission(
        run_id=run_id,
        parent=location_name(target.project, target.region),
        kind=spec.kind,
        body={
            "displayName": run_id,
            **_work(spec, job_spec),
            "labels": {**spec.labels, **own, RUN_LABEL: run_id, MODEL_LABEL: spec.model_name},
            **({"encryptionSpec": {"kmsKeyName": spec.encryption_key}} if spec.encryption_key else {}),
        },
    )


def _work(spec: JobSpec, job_spec: Mapping[str, object]) -> dict[str, object]:
    tuning = spec.tuning
    if tuning is None:
        return {"jobSpec": job_spec}
    return {
        "studySpec": study_spec(tuning.document),
        "maxTrialCount": tuning.max_trials,
        "parallelTrialCount": tuning.parallel_trials,
        "maxFailedTrialCount": tuning.max_failed_trials,
        "trialJobSpec": job_spec,
    }


def _pool(pool: WorkerPool | None, environment: ReplicaEnvironment, run_id: str) -> dict[str, object]:
    if pool is None:
        return {}
    machine: dict[str, object] = {"machineType": pool.machine}
    if pool.accelerator:
        machine |= {"acceleratorType": pool.accelerator.type, "acceleratorCount": pool.accelerator.count}
    fields: dict[str, object] = {
        "machineSpec": machine | _in_api_form(pool.settings, in_camel_case(MACHINE_SETTINGS)),
        "replicaCount": str(pool.replicas),  # int64 travels as a string
        **_program(pool.program, environment, run_id),
    }
    if pool.disk:
        given = {key: value for key, value in vars(pool.disk).items() if value is not None}
        fields["diskSpec"] = under_names(given, DISK)
    return fields | _in_api_form(pool.settings, in_camel_case(MOUNTS))


# Any: the schema has validated the values.
def _in_api_form(document: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, object]:
    """What the document has of the keys, and of those inside their values, as the API spells them."""
    found: dict[str, object] = {}
    for ours, theirs in keys.items():
        value, inside = document.get(ours), in_camel_case(PARTS.get(ours, ()))
        if value and inside and not isinstance(value, Mapping):
            found[theirs] = [_in_api_form(part, inside) for part in value]
        elif value:
            found[theirs] = _in_api_form(value, inside) if inside else value
    return found


def _program(program: Program, environment: ReplicaEnvironment, run_id: str) -> dict[str, object]:
    fields: dict[str, object] = {}
    if program.args:
        fields["args"] = [text_with_values(word, run_id=run_id) for word in program.args]
    # In the request's own order: $(NAME) in a value stands for a variable before it.
    env = [{"name": name, "value": value} for name, value in program.env.items()]
    if isinstance(program, Script):
        env.append({"name": VARIABLE, "value": program.archive})
    if environment is not ReplicaEnvironment.VERTEX:
        env.append({"name": REPLICA_ENVIRONMENT, "value": str(environment)})
    if env:
        fields["env"] = env
    match program:
        case Container():
            command = {"command": list(program.command)} if program.command else {}
            return {"containerSpec": {"imageUri": program.image, **command, **fields}}
        case Script():
            words = run_command(program.archive, *program.words, launcher=program.launcher)
            return {"containerSpec": {"imageUri": program.image, "command": list(words), **fields}}
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
    wanted = {
        key: value for key, value in vars(scheduling).items() if value is not None and value is not False
    }
    fields = {**under_names(wanted, DURATIONS, "{}s".format), **under_names(wanted, FLAGS)}
    strategy = next((word for key, word in STRATEGIES.items() if key in wanted), None)
    return {**fields, "strategy": strategy} if strategy else fields
