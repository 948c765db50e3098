"""A CustomJob or HyperparameterTuningJob as its API spells it, in camelCase or snake_case, in the project's dialect.

`gcloud ai custom-jobs create --config` takes a CustomJobSpec, `gcloud ai hp-tuning-jobs create --config` a
tuning job; `describe` prints either job whole. All of these are requests.

The translation keeps the path in the user's text of every translated value, so that faults name what the user wrote.
What has no place in a request is a fault; nothing is dropped silently.

Source: https://cloud.google.com/sdk/gcloud/reference/ai/custom-jobs/create, …/ai/hp-tuning-jobs/create,
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
and …/projects.locations.hyperparameterTuningJobs
"""

from collections.abc import Collection, Mapping
from typing import Any

from trainmaster.orchestrator.core.names import (
    DEPLOYMENT_LABEL,
    MODEL_LABEL,
    PRIORITY_LABEL,
    RUN_LABEL,
    model_name_from,
)
from trainmaster.orchestrator.core.requests.fields import Fields, copy_keys, inverse, number
from trainmaster.orchestrator.core.requests.own_document import OwnDocument, Translated, Translation
from trainmaster.orchestrator.core.requests.spec import SETTINGS
from trainmaster.orchestrator.core.requests.submission import DURATIONS, FLAGS, STRATEGIES
from trainmaster.orchestrator.core.requests.vertex.pools import write_pools
from trainmaster.orchestrator.core.requests.vertex.study import write_tuning

MODEL_NAME_LABEL = "model_name"
"""The label that names the model; without it the display name does."""
SERVICE_LABELS = (RUN_LABEL, MODEL_LABEL, DEPLOYMENT_LABEL)
"""Labels of a job that this service submitted; a request that repeats the job is a new run."""
OUTPUT_ONLY = (
    "name",
    "state",
    "createTime",
    "startTime",
    "endTime",
    "updateTime",
    "error",
    "webAccessUris",
    "satisfiesPzs",
    "satisfiesPzi",
)
"""What the service alone writes about a job; of a tuning job its trials too."""

DEPRECATED = {"ON_DEMAND": "STANDARD", "LOW_COST": "SPOT"}
_STRATEGIES = {"STRATEGY_UNSPECIFIED": None, "STANDARD": None, **inverse(STRATEGIES)}


def tuning_job(document: Mapping[str, Any], name: str | None) -> Translated:
    """The tuning job in the project's dialect; `faults` has what was wrong with its form."""
    job, own = _job_and_own(document)
    _write_envelope(job, own, name, output_only=(*OUTPUT_ONLY, "trials"))
    _write_job_spec(job.fields("trialJobSpec"), own, ending=_run_directory(job))
    write_tuning(job, own)
    return own.translation.result(own.content)


def custom_job(document: Mapping[str, Any], name: str | None) -> Translated:
    """The custom job in the project's dialect; `faults` has what was wrong with its form.

    Beside a bare CustomJobSpec may stand what gcloud takes as flags: displayName, labels, encryptionSpec.
    """
    job, own = _job_and_own(document)
    is_bare = not job.has("jobSpec")
    _write_envelope(job, own, name, output_only=() if is_bare else OUTPUT_ONLY)
    _write_job_spec(job if is_bare else job.fields("jobSpec"), own, ending=_run_directory(job))
    return own.translation.result(own.content)


def _job_and_own(document: Mapping[str, Any]) -> tuple[Fields, OwnDocument]:
    translation = Translation()
    return Fields(document, (), translation), OwnDocument(translation)


def _write_envelope(job: Fields, own: OwnDocument, name: str | None, *, output_only: tuple[str, ...]) -> None:
    """Write what both kinds of job have around their spec."""
    labels = labels_of(job)
    passed_over = [*job.present(output_only), *(f"labels.{key}" for key in SERVICE_LABELS if key in labels)]
    if passed_over:
        problem = "output of the service about an earlier job; ignored"
        job.translation.warn((), problem, found=", ".join(passed_over))
    _write_model_name(job, own, labels, name)
    write_labels(job, own, SERVICE_LABELS)
    encryption = job.fields("encryptionSpec")
    copy_keys(encryption, own, {"kmsKeyName": "encryption_key"})


def labels_of(job: Fields) -> Mapping[str, object]:
    labels = job.get("labels")
    return labels if isinstance(labels, Mapping) else {}


def write_labels(job: Fields, own: OwnDocument, others: Collection[str] = ()) -> None:
    """Write the priority, and the labels without those that say something to this service and `others`."""
    labels, where = labels_of(job), job.at("labels")
    own.put("priority", number(labels.get(PRIORITY_LABEL)), (*where, PRIORITY_LABEL))
    ours = (MODEL_NAME_LABEL, PRIORITY_LABEL, *others)
    rest = {key: value for key, value in labels.items() if key not in ours}
    own.put("labels", rest if isinstance(job.get("labels"), Mapping) else job.get("labels"), where)


def _run_directory(job: Fields) -> str:
    """The end of the output directory of a job that this service submitted: the run's own; else empty."""
    run_id, model = map(labels_of(job).get, (RUN_LABEL, MODEL_LABEL))
    return f"/{model}/{run_id}" if isinstance(run_id, str) and isinstance(model, str) else ""


def _write_model_name(job: Fields, own: OwnDocument, labels: Mapping[str, object], name: str | None) -> None:
    """By label, also that of an earlier run, by display name, by the dropped file's name."""
    display_name, where = job.get("displayName"), job.at("displayName")
    label = next((key for key in (MODEL_NAME_LABEL, MODEL_LABEL) if labels.get(key) not in (None, "")), None)
    if label is not None:
        own.put("model_name", labels[label], (*job.at("labels"), label))
        if display_name is not None:
            problem = f"the label {label} names the model, and the run the job: this name is ignored"
            job.warn("displayName", problem)
    elif isinstance(display_name, str) and display_name.strip():
        own.put("model_name", legal := model_name_from(display_name), where)
        if legal != display_name:
            problem = f"not a valid model name; the model is called {legal}"
            job.warn("displayName", problem, repair="the label model_name also sets it")
    elif display_name is not None and not isinstance(display_name, str):
        own.put("model_name", display_name, where)
    else:
        own.put("model_name", name, where)
        if name is None:
            allowed = "displayName, or the label model_name; a dropped file is a name, too"
            repair = "write displayName: NAME beside the job's other keys"
            job.refuse("displayName", "the model has no name", found="", allowed=allowed, repair=repair)


def _write_job_spec(spec: Fields, own: OwnDocument, *, ending: str) -> None:
    """`ending` is what the service itself put at the end of the output directory."""
    copy_keys(spec, own, inverse(SETTINGS))
    _write_output(spec, own, ending)
    _write_scheduling(spec, own)
    write_pools(spec, own)


def _write_output(spec: Fields, own: OwnDocument, ending: str) -> None:
    written = spec.fields("baseOutputDirectory")
    output = own.inner("output", written.path, there=spec.has("baseOutputDirectory"))
    prefix = written.get("outputUriPrefix")
    if isinstance(prefix, str) and ending:
        prefix = prefix.rstrip("/").removesuffix(ending)
    output.put("prefix_uri", prefix, written.at("outputUriPrefix"))


def _write_scheduling(spec: Fields, own: OwnDocument) -> None:
    written = spec.fields("scheduling")
    scheduling = own.inner("scheduling", written.path, there=spec.has("scheduling"))
    copy_keys(written, scheduling, inverse(DURATIONS), Fields.duration)
    copy_keys(written, scheduling, inverse(FLAGS))
    _write_strategy(written, scheduling)
    _drop_without_effect(written, scheduling.content)


def _write_strategy(written: Fields, scheduling: OwnDocument) -> None:
    for ours in STRATEGIES:
        scheduling.translation.place((*scheduling.path, ours), written.at("strategy"))
    found = written.get("strategy")
    today = DEPRECATED.get(found) if isinstance(found, str) else None
    if today is not None:
        problem = f"Vertex AI deprecated this strategy; the job is submitted as {today}"
        written.warn("strategy", problem, repair=f"write {today}")
    words = _STRATEGIES | {old: _STRATEGIES[new] for old, new in DEPRECATED.items()}
    word = written.word("strategy", words)
    if word:
        scheduling.content[word] = True


def _drop_without_effect(written: Fields, scheduling: dict[str, object]) -> None:
    """Drop what the service itself ignores, and what would be a contradiction in the project's dialect."""
    if "max_wait_s" in scheduling and "flex_start" not in scheduling:
        del scheduling["max_wait_s"]
        problem = "Vertex AI only waits with the strategy FLEX_START; ignored"
        written.warn("maxWaitDuration", problem, repair="remove it")
    restart, retries = FLAGS
    if scheduling.get(restart) is True and scheduling.get(retries) is True:
        del scheduling[restart]
        problem = "without retries nothing is restarted; ignored"
        written.warn("restartJobOnWorkerRestart", problem, repair="remove one of the two")
