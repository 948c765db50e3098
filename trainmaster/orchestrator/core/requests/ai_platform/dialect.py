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

from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.ai_platform.job import (
    ROLES,
    LegacyJob,
    Meaning,
    meanings_from,
    write_meaning,
)
from trainmaster.orchestrator.core.requests.ai_platform.machines import write_cluster
from trainmaster.orchestrator.core.requests.ai_platform.programs import write_programs
from trainmaster.orchestrator.core.requests.checks.cluster import FLEX_START_ACCELERATORS
from trainmaster.orchestrator.core.requests.fields import Fields, copy_keys, inverse
from trainmaster.orchestrator.core.requests.own_document import OwnDocument, Translated, Translation
from trainmaster.orchestrator.core.requests.spec import ParameterType
from trainmaster.orchestrator.core.requests.study import ALGORITHMS, SCALES
from trainmaster.orchestrator.core.requests.vertex.dialect import MODEL_NAME_LABEL, labels_of, write_labels
from trainmaster.orchestrator.core.requests.vertex.study import GOALS, named_parameter

_JOB_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
MIN_WAIT_S = 1800
MAX_PRIORITY = 1000
OUTPUT_ONLY = (
    "createTime",
    "endTime",
    "errorMessage",
    "etag",
    "jobPosition",
    "startTime",
    "state",
    "trainingOutput",
)
"""What the service wrote into a Job."""
_SAME = {"serviceAccount": "service_account", "network": "network", "enableWebAccess": "web_access"}
_STRATEGIES = {
    "STRATEGY_UNSPECIFIED": Meaning(),
    "ON_DEMAND": Meaning(),
    "LOW_COST": Meaning(ours=True, problem="it becomes spot: Spot VMs may be preempted at any time"),
}
# By the field's name `false` asks for a restart of the whole job, by its reference `true` does; it is right for every program.
_WHOLE_RESTART = Meaning(
    ours=True,
    problem="when a worker restarts, the whole job restarts. The field's name and its reference contradict each other; "
    "this fits either reading",
    repair="remove it if a worker may restart alone",
)
_CHIEF_OF_PACKAGES = Meaning(
    problem="it only applies to images; TF_CONFIG says chief, as with every runtime from 2.1"
)
_MASTER_OF_IMAGES = Meaning(
    ours="ai_platform",
    problem="the local stack writes TF_CONFIG and CLUSTER_SPEC as AI Platform Training did; Vertex AI does not",
    repair="in the image, start the program with python -m trainer.launch --framework ai-platform --",
)

DEFAULT_TAG = "training/hptuning/metric"
_SEARCHES = {
    **meanings_from(inverse(ALGORITHMS)),
    "POPULATION_BASED_TRAINING": Meaning(
        problem="Vertex AI does not support population based training",
        repair="write algorithm: ALGORITHM_UNSPECIFIED, the Bayesian search, which is the nearest",
        is_gone=True,
    ),
}
_EARLY_STOPPING = {
    False: Meaning(),
    True: Meaning(
        ours={"rule": "median"},
        problem="it becomes the median rule, Vertex AI's nearest to the old service's own",
    ),
}
_SCALES = {"NONE": Meaning(), **meanings_from(inverse(SCALES))}
_TYPES = {kind.upper(): str(kind) for kind in ParameterType}
_COUNTS = {"maxParallelTrials": "parallel_trials", "maxFailedTrials": "max_failed_trials"}
_RANGE = {"minValue": "min", "maxValue": "max"}
_LISTS = {"categoricalValues": "values", "discreteValues": "values"}
_KEYS = {
    "DOUBLE": tuple(_RANGE),
    "INTEGER": tuple(_RANGE),
    "CATEGORICAL": ("categoricalValues",),
    "DISCRETE": ("discreteValues",),
}


def ai_platform_job(document: Mapping[str, Any], name: str | None) -> Translated:
    """The training job in the project's dialect; `name` is the model's if the job has neither id nor label."""
    translation = Translation()
    written, own = Fields(document, (), translation), OwnDocument(translation)
    spec = written.fields("trainingInput")
    if not written.has("trainingInput"):
        problem, repair = "missing: it describes the training", "write trainingInput: {…}"
        written.refuse("trainingInput", problem, repair=repair)
    translation.place((), spec.path if written.has("trainingInput") else ())
    write_labels(written, own)
    _write_model_name(written, own, name)
    for key in filter(written.has, OUTPUT_ONLY):
        problem = "the old service's output about a past job; it has no effect"
        written.warn(key, problem, found="")
    region = _write_spec(spec, own)
    yielding = tuple(key for key in ("output", "model_uri") if key in own.content)
    return translation.result(own.content, region=region, yielding=yielding)


def _write_model_name(written: Fields, own: OwnDocument, name: str | None) -> None:
    label, job_id = labels_of(written).get(MODEL_NAME_LABEL), written.get("jobId")
    is_labelled = label not in (None, "")
    if is_labelled:
        own.put("model_name", label, (*written.at("labels"), MODEL_NAME_LABEL))
    else:
        model_name = model_name_from(job_id) if isinstance(job_id, str) else name
        own.put("model_name", model_name, written.at("jobId"))
    if job_id is None:
        if name is None and not is_labelled:
            repair = "write jobId: census_1 or labels: {model_name: census}, or drop the job as a file"
            written.refuse("jobId", "missing: the model needs a name", repair=repair)
    elif not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
        allowed = "letters, digits and '_', beginning with a letter, at most 128 characters"
        written.refuse("jobId", "not a valid job id", allowed=allowed)
    elif MODEL_NAME_LABEL not in labels_of(written):
        written.warn(
            "jobId",
            f"it only names the model, as {model_name_from(job_id)!r}, and no longer needs to be unique: "
            "every drop gets its own run id",
            repair="labels: {model_name: NAME} gives these runs one model name, so that their models can be compared",
        )


def _write_spec(spec: Fields, own: OwnDocument) -> str | None:
    """Write the trainingInput. Returns the region that it asks for."""
    configs = {role: spec.fields(role.config_key) for role in ROLES}
    job = LegacyJob(spec=spec, configs=configs, own=own, cluster=own.inner("cluster", spec.path))
    write_cluster(job)
    write_programs(job)
    _write_job_dir(job)
    _write_scheduling(job)
    _write_hyperparameters(job)
    _write_environment(job)
    copy_keys(spec, own, _SAME)
    copy_keys(spec.fields("encryptionConfig"), own, {"kmsKeyName": "encryption_key"})
    region = spec.get("region")
    own.translation.place(("region",), spec.at("region"))
    if region is None or isinstance(region, str):
        return region
    spec.refuse("region", "expected a string")
    return None


def _write_job_dir(job: LegacyJob) -> None:
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


def _write_environment(job: LegacyJob) -> None:
    key, is_package = "useChiefInTfConfig", "python_package" in job.own.content
    meanings = {True: Meaning(), False: _CHIEF_OF_PACKAGES if is_package else _MASTER_OF_IMAGES}
    write_meaning(job.spec, key, meanings, job.cluster, "replica_environment")
    if not is_package and not job.spec.has(key):
        problem = "missing: TF_CONFIG says chief, as Vertex AI's does; AI Platform Training said master"
        repair = "a program that needs master: write useChiefInTfConfig: false; else true"
        job.spec.warn(key, problem, repair=repair)


def _write_scheduling(job: LegacyJob) -> None:
    written = job.spec.fields("scheduling")
    own = job.own.inner("scheduling", written.path, there=job.spec.has("scheduling"))
    copy_keys(written, own, {"maxRunningTime": "timeout_s"}, Fields.duration)
    restart = {True: _WHOLE_RESTART, False: _WHOLE_RESTART}
    write_meaning(written, "resilientToWorkerRestart", restart, own, "restart_on_worker_restart")
    write_meaning(written, "strategy", _STRATEGIES, own, "spot")
    _write_wait(written, own, job)
    priority = written.get("priority")
    if isinstance(priority, int) and not isinstance(priority, bool) and 0 <= priority <= MAX_PRIORITY:
        written.warn("priority", "ignored: Vertex AI jobs have no priority")
    elif priority is not None:
        written.refuse("priority", "not a valid priority", allowed=f"whole numbers from 0 to {MAX_PRIORITY}")


def _write_wait(written: Fields, own: OwnDocument, job: LegacyJob) -> None:
    key = "maxWaitTime"
    wait_s, where = written.duration(key), written.at(key)
    if wait_s is None:
        return
    # Flexible start needs every pool to be the same machine with an accelerator that one may wait for.
    pools = [(pool.content.get("machine"), pool.content.get("accelerator")) for pool in job.replicas.values()]
    can_flex = text_at(job.cluster.content, "chief", "accelerator", "type") in FLEX_START_ACCELERATORS
    if not isinstance(wait_s, int):
        written.refuse(key, "expected whole seconds", repair="write for example 3600s")
    elif wait_s < MIN_WAIT_S:
        written.refuse(key, "too short", allowed=f"at least {MIN_WAIT_S}s")
    elif can_flex and all(pool == pools[0] for pool in pools):
        own.put("flex_start", True, where)
        own.put("max_wait_s", wait_s, where)
        written.warn(key, "it becomes flex_start: the job waits in the queue for accelerators", found="")
    else:
        problem = "ignored: on Vertex AI only jobs with identical replicas, on L4 or newer GPUs, can limit their wait"
        written.warn(key, problem, repair="cancel the job yourself if it waits too long")


def _write_hyperparameters(job: LegacyJob) -> None:
    """Write the part that only a tuning has."""
    written = job.spec.fields("hyperparameters")
    if not job.spec.has("hyperparameters"):
        return
    tuning = job.own.inner("tuning", written.path)
    _write_metric(written, tuning)
    trials = written.number("maxTrials")
    tuning.put("max_trials", 1 if trials is None else trials, written.at("maxTrials"))
    copy_keys(written, tuning, _COUNTS, Fields.number)
    parameters = tuning.inner("parameters", written.at("params"))
    for parameter in written.items("params"):
        _write_parameter(parameter, parameters)
    write_meaning(written, "algorithm", _SEARCHES, tuning, "algorithm")
    write_meaning(written, "enableTrialEarlyStopping", _EARLY_STOPPING, tuning, "early_stopping")
    if written.has("resumePreviousJobId"):
        repair = "remove it and narrow the ranges of params to what the earlier trials found best"
        problem = "a Vertex AI study cannot take over an earlier study's trials"
        written.refuse("resumePreviousJobId", problem, repair=repair)


def _write_metric(written: Fields, tuning: OwnDocument) -> None:
    tuning.put("metrics", [], written.path)
    metric = tuning.member("metrics", 0, written.path)
    tag = written.get("hyperparameterMetricTag")
    metric.put("id", DEFAULT_TAG if tag is None else tag, written.at("hyperparameterMetricTag"))
    # A word that is none of these is a fault already; the schema need not miss the goal too.
    metric.put("goal", written.word("goal", GOALS) if written.has("goal") else "maximize", written.at("goal"))


def _write_parameter(spec: Fields, parameters: OwnDocument) -> None:
    own = named_parameter(spec, "parameterName", parameters)
    if own is None:
        return
    own.put("type", spec.word("type", _TYPES), spec.at("type"))
    write_meaning(spec, "scaleType", _SCALES, own, "scale")
    kind = spec.get("type")
    keys = _KEYS.get(kind) if isinstance(kind, str) else None
    for key, ours in (_RANGE | _LISTS).items():
        if keys is None or key in keys:
            value = spec.number(key) if kind == "INTEGER" else spec.get(key)
            own.put(ours, value, spec.at(key))
        elif kind == "DISCRETE" and key in _RANGE:
            if spec.has(key):
                problem = "a DISCRETE parameter has its discreteValues; this was never read"
                spec.warn(key, problem, found="")
        elif spec.get(key):
            repair = f"write the values in {' and '.join(keys)}, or change the type"
            spec.refuse(key, f"a {kind} parameter has no {key}", repair=repair)
