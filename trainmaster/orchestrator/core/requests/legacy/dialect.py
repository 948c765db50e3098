"""The config.yaml of `gcloud ai-platform jobs submit training --config`, or a whole Job, in the project's dialect.

As with every dialect, each value of the translated document keeps its path in the user's text, and a key without a
translation is a fault. Where nothing equivalent exists today, the fault names the nearest choice; what is accepted
but not quite the same is a warning.

Source: the Job message of gcloud's own client (googlecloudsdk/generated_clients/apis/ml/v1/ml_v1_messages.py)
and https://cloud.google.com/vertex-ai/docs/start/migrating-to-vertex-ai
"""

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.checks.scheduling import FLEX_START_ACCELERATORS
from trainmaster.orchestrator.core.requests.legacy.machines import write_cluster
from trainmaster.orchestrator.core.requests.legacy.programs import write_programs
from trainmaster.orchestrator.core.requests.legacy.reading import ROLES, Job
from trainmaster.orchestrator.core.requests.legacy.study import write_hyperparameters
from trainmaster.orchestrator.core.requests.legacy.tables import OUTPUT_ONLY
from trainmaster.orchestrator.core.requests.translation.fields import Fields, copy_keys, seconds
from trainmaster.orchestrator.core.requests.translation.own_document import (
    OwnDocument,
    Translated,
    Translation,
)
from trainmaster.orchestrator.core.requests.vertex.dialect import MODEL_NAME_LABEL, labels_of, write_labels

_JOB_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
MIN_WAIT_S = 1800
MAX_PRIORITY = 1000
_STRATEGIES = ("STRATEGY_UNSPECIFIED", "ON_DEMAND", "LOW_COST")
_SAME = {"serviceAccount": "service_account", "network": "network", "enableWebAccess": "web_access"}


def translated(document: Mapping[str, Any], name: str | None) -> Translated:
    """The training job in the project's dialect; `name` is the model's if the job has neither id nor label."""
    translation = Translation()
    written, own = Fields(document, (), translation), OwnDocument(translation)
    spec = written.fields("trainingInput")
    if not written.has("trainingInput"):
        problem, repair = "missing: it describes the training", "write trainingInput: {…}"
        written.refuse("trainingInput", problem, repair=repair)
    translation.place((), spec.path if written.has("trainingInput") else ())
    write_labels(written, own)
    _check_job_id(written)
    _write_model_name(written, own, name)
    _warn_of_output(written)
    region = _write_spec(spec, own)
    yielding = tuple(key for key in ("output", "model_uri") if key in own.content)
    return translation.result(own.content, region=region, yielding=yielding)


def _write_spec(spec: Fields, own: OwnDocument) -> str | None:
    """Write the trainingInput. Returns the region that it asks for."""
    configs = {role.ours: spec.fields(role.config_key) for role in ROLES}
    job = Job(spec=spec, configs=configs, own=own, cluster=own.inner("cluster", spec.path))
    write_cluster(job)
    write_programs(job)
    _write_job_dir(job)
    _write_scheduling(job)
    write_hyperparameters(job)
    _write_environment(job)
    copy_keys(spec, own, _SAME)
    key = spec.fields("encryptionConfig")
    if spec.has("encryptionConfig"):
        copy_keys(key, own, {"kmsKeyName": "encryption_key"})
    return _region(spec)


def _write_model_name(written: Fields, own: OwnDocument, name: str | None) -> None:
    labels, job_id = labels_of(written), written.get("jobId")
    if labels.get(MODEL_NAME_LABEL) not in (None, ""):
        own.put("model_name", labels[MODEL_NAME_LABEL], (*written.at("labels"), MODEL_NAME_LABEL))
    elif isinstance(job_id, str):
        own.put("model_name", model_name_from(job_id), written.at("jobId"))
    else:
        own.put("model_name", name, written.at("jobId"))
        if name is None and job_id is None:
            repair = "write jobId: census_1 or labels: {model_name: census}, or drop the job as a file"
            written.refuse("jobId", "missing: the model needs a name", repair=repair)


def _check_job_id(written: Fields) -> None:
    job_id = written.get("jobId")
    if job_id is None:
        return
    if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        allowed = "letters, digits and '_', beginning with a letter, at most 128 characters"
        written.refuse("jobId", "not a valid job id", allowed=allowed)
    elif MODEL_NAME_LABEL not in labels_of(written):
        written.warn(
            "jobId",
            f"it only names the model, as {model_name_from(job_id)!r}, and no longer needs to be unique: "
            "every drop gets its own run id",
            repair="labels: {model_name: NAME} gives these runs one model name, so that their models can be compared",
        )


def _warn_of_output(written: Fields) -> None:
    for key in filter(written.has, OUTPUT_ONLY):
        problem = "the old service's output about a past job; it has no effect"
        written.warn(key, problem, found="")


def _write_job_dir(job: Job) -> None:
    job_dir = job.spec.get("jobDir")
    if job_dir is None:
        return
    if not isinstance(job_dir, str) or not job_dir.startswith("gs://"):
        job.spec.refuse("jobDir", "not in the expected format", allowed="gs://BUCKET/PATH")
        return
    where, is_tuning = job.spec.at("jobDir"), job.spec.has("hyperparameters")
    job.own.inner("output", where).put("prefix_uri", job_dir, where)
    directory = job_dir.rstrip("/")
    if "/" in directory.removeprefix("gs://"):  # a whole bucket is not a model
        job.own.put("model_uri", f"{directory}/${{trial}}" if is_tuning else directory, where)
    problem = (
        "the program gets it as --job-dir; if it leaves nothing in AIP_MODEL_DIR, the files it writes there after the "
        "job's start are recorded as its model"
    )
    repair = "export to AIP_MODEL_DIR, which is unique to each run"
    if is_tuning:
        problem += ". Trials share the directory; the old service added the trial's id to it"
        repair += "; or write to the directory CLOUD_ML_TRIAL_ID below it"
    job.spec.warn("jobDir", problem, repair=repair)


def _write_environment(job: Job) -> None:
    key = "useChiefInTfConfig"
    chief = job.spec.get(key)
    if not (chief is None or isinstance(chief, bool)):
        job.spec.refuse(key, "expected true or false")
    if "python_package" in job.own.content:
        if chief is False:
            problem = "it only applies to images; TF_CONFIG says chief, as with every runtime from 2.1"
            job.spec.warn(key, problem)
    elif chief is False:
        job.cluster.put("replica_environment", "ai_platform", job.spec.at(key))
        problem = "the local stack writes TF_CONFIG and CLUSTER_SPEC as AI Platform Training did; Vertex AI does not"
        repair = "in the image, start the program with python -m trainer.launch --framework ai-platform --"
        job.spec.warn(key, problem, repair=repair)
    elif chief is None:
        problem = "missing: TF_CONFIG says chief, as Vertex AI's does; AI Platform Training said master"
        repair = "a program that needs master: write useChiefInTfConfig: false; else true"
        job.spec.warn(key, problem, repair=repair)


def _region(spec: Fields) -> str | None:
    region = spec.get("region")
    if region is None:
        return None
    if not isinstance(region, str):
        spec.refuse("region", "expected a string")
        return None
    spec.translation.place(("region",), spec.at("region"))
    return region


def _write_scheduling(job: Job) -> None:
    part = job.part("scheduling", "scheduling")
    if part is None:
        return
    written, own = part
    own.put("timeout_s", _seconds(written, "maxRunningTime"), written.at("maxRunningTime"))
    _write_wait(written, own, job.cluster)
    _warn_of_priority(written)
    _write_restart(written, own)
    _write_strategy(written, own)


def _write_strategy(written: Fields, own: OwnDocument) -> None:
    strategy = written.get("strategy")
    if strategy == "LOW_COST":
        own.put("spot", True, written.at("strategy"))
        written.warn("strategy", "it becomes spot: Spot VMs may be preempted at any time")
    elif strategy is not None and strategy not in _STRATEGIES:
        written.refuse_choice("strategy", _STRATEGIES)


def _seconds(written: Fields, key: str) -> int | None:
    found = seconds(written.get(key))
    if found is None or (isinstance(found, int) and not isinstance(found, bool)):
        return found
    written.refuse(key, "expected whole seconds", repair="write for example 3600s")
    return None


def _write_wait(written: Fields, own: OwnDocument, cluster: OwnDocument) -> None:
    key = "maxWaitTime"
    wait_s = _seconds(written, key)
    if wait_s is None:
        return
    if wait_s < MIN_WAIT_S:
        written.refuse(key, "too short", allowed=f"at least {MIN_WAIT_S}s")
    elif _can_flex(cluster):
        own.put("flex_start", True, written.at(key))
        own.put("max_wait_s", wait_s, written.at(key))
        problem = "it becomes flex_start: the job waits in the queue for accelerators"
        written.warn(key, problem, found="")
    else:
        written.warn(
            key,
            "ignored: on Vertex AI only jobs with identical replicas, on L4 or newer GPUs, "
            "can limit their wait",
            repair="cancel the job yourself if it waits too long",
        )


def _warn_of_priority(written: Fields) -> None:
    priority = written.get("priority")
    if priority is None:
        return
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= MAX_PRIORITY:
        written.refuse("priority", "not a valid priority", allowed=f"whole numbers from 0 to {MAX_PRIORITY}")
    else:
        written.warn("priority", "ignored: Vertex AI jobs have no priority")


def _write_restart(written: Fields, own: OwnDocument) -> None:
    """The whole job is restarted where the file speaks of it at all.

    The field's name and its reference say opposite things: by its name `false` asks for a restart of the
    job, by the reference `true` does. A restart of the whole job is right for every program.
    """
    key = "resilientToWorkerRestart"
    resilient = written.get(key)
    if resilient is None:
        return
    if not isinstance(resilient, bool):
        written.refuse(key, "expected true or false")
        return
    own.put("restart_on_worker_restart", True, written.at(key))
    written.warn(
        key,
        "when a worker restarts, the whole job restarts. The field's name and its reference contradict each other; "
        "this fits either reading",
        repair="remove it if a worker may restart alone",
    )


def _can_flex(cluster: OwnDocument) -> bool:
    """Whether every pool is the same machine with an accelerator that one may wait for."""
    pools = [pool for pool in cluster.content.values() if isinstance(pool, dict)]
    machines = [(pool.get("machine"), pool.get("accelerator")) for pool in pools]
    first = machines[0][1] if machines else None
    return (
        isinstance(first, dict)
        and str(first.get("type")) in FLEX_START_ACCELERATORS
        and all(machine == machines[0] for machine in machines)
    )
