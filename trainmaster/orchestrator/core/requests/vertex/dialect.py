"""A CustomJob or HyperparameterTuningJob as its API spells it, in camelCase or snake_case, said in our own way.

`gcloud ai custom-jobs create --config` takes a CustomJobSpec, `gcloud ai hp-tuning-jobs create --config` a
tuning job; `describe` prints either job whole. All of these are requests.

The translation keeps, for every place of our own document, the place in the text that it came from, so
that faults name what the user wrote. What has no place in a request is a fault; nothing is dropped silently.

Source: https://cloud.google.com/sdk/gcloud/reference/ai/custom-jobs/create, …/ai/hp-tuning-jobs/create,
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.customJobs
and …/projects.locations.hyperparameterTuningJobs
"""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path, shown
from trainmaster.orchestrator.core.names import MODEL_LABEL, PRIORITY_LABEL, RUN_LABEL, model_name_from
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path, Translated, number
from trainmaster.orchestrator.core.requests.vertex.job import JobSpecTranslation
from trainmaster.orchestrator.core.requests.vertex.study import StudyTranslation

MODEL_NAME_LABEL = "model_name"
"""The label that names the model; without it the display name does."""
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
_TUNING_MARKS = frozenset({"studySpec", "study_spec", "trialJobSpec", "trial_job_spec"})
_CUSTOM_MARKS = frozenset({"workerPoolSpecs", "worker_pool_specs", "jobSpec", "job_spec"})


def own(document: Mapping[str, Any], name: str | None) -> Translated:  # noqa: ARG001 - it has its own
    """A document in our own way, as it is."""
    region = document.get("region")
    return Translated(document=document, region=region if isinstance(region, str) else None)


def is_tuning_job(document: Mapping[str, object]) -> bool:
    """Whether the document is a HyperparameterTuningJob as the API spells it."""
    return not _TUNING_MARKS.isdisjoint(document)


def is_custom_job(document: Mapping[str, object]) -> bool:
    """Whether the document is a CustomJob, or the CustomJobSpec of one, as the API spells it."""
    return not _CUSTOM_MARKS.isdisjoint(document)


def tuning_job(document: Mapping[str, Any], name: str | None) -> Translated:
    """The tuning job in our own way; what was wrong with its form is in `faults`."""
    return _Translation().tuning_job(Fields(document, ()), name)


def custom_job(document: Mapping[str, Any], name: str | None) -> Translated:
    """The custom job in our own way; what was wrong with its form is in `faults`.

    Beside a bare CustomJobSpec may stand what gcloud takes as flags: displayName, labels, encryptionSpec.
    """
    return _Translation().custom_job(Fields(document, ()), name)


class _Translation(StudyTranslation, JobSpecTranslation):
    """One document's translation: the places, the faults and the warnings found on the way."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_over: list[str] = []

    def tuning_job(self, job: Fields, name: str | None) -> Translated:
        mine: dict[str, Any] = {}
        self._passed_over += job.present((*OUTPUT_ONLY, "trials"))
        ending = self._around(mine, job, name)
        self._job_spec(mine, self._fields(job, "trialJobSpec"), ending=ending)
        mine["tuning"] = self._tuning(job)
        self._faults += job.unknown()
        return self._whole(mine)

    def custom_job(self, job: Fields, name: str | None) -> Translated:
        mine: dict[str, Any] = {}
        if not job.has("jobSpec"):
            ending = self._around(mine, job, name)
            self._job_spec(mine, job, ending=ending)
            return self._whole(mine)
        self._passed_over += job.present(OUTPUT_ONLY)
        ending = self._around(mine, job, name)
        self._job_spec(mine, self._fields(job, "jobSpec"), ending=ending)
        self._faults += job.unknown()
        return self._whole(mine)

    def _whole(self, mine: dict[str, Any]) -> Translated:
        if self._passed_over:
            problem = "what the service wrote about an earlier job is passed over"
            self._warn((), problem, found=", ".join(self._passed_over))
        return self._translated(mine)

    def _around(self, mine: dict[str, Any], job: Fields, name: str | None) -> str:
        """What both kinds of job have around their spec. The end of the output directory that is a run's own."""
        labels = job.get("labels")
        written = labels if isinstance(labels, Mapping) else {}
        self._model_name(mine, job, written, name)
        run_id, model = written.get(RUN_LABEL), written.get(MODEL_LABEL)
        ours = (MODEL_NAME_LABEL, PRIORITY_LABEL, RUN_LABEL, MODEL_LABEL)
        self._passed_over += [f"labels.{key}" for key in ours[2:] if key in written]
        priority = number(written.get(PRIORITY_LABEL))
        self._put(mine, (), "priority", priority, (*job.at("labels"), PRIORITY_LABEL))
        rest: object = {key: value for key, value in written.items() if key not in ours}
        self._put(mine, (), "labels", rest if isinstance(labels, Mapping) else labels, job.at("labels"))
        encryption = self._fields(job, "encryptionSpec")
        self._put(mine, (), "encryption_key", encryption.get("kmsKeyName"), encryption.at("kmsKeyName"))
        self._faults += encryption.unknown()
        return f"/{model}/{run_id}" if isinstance(run_id, str) and isinstance(model, str) else ""

    def _model_name(
        self, mine: dict[str, Any], job: Fields, labels: Mapping[str, object], name: str | None
    ) -> None:
        """By label, also that of an earlier run, by display name, by the dropped file's name."""
        display_name, where = job.get("displayName"), job.at("displayName")
        label = next((key for key in (MODEL_NAME_LABEL, MODEL_LABEL) if labels.get(key) is not None), None)
        if label is not None:
            path: Path = (*job.at("labels"), label)
            self._put(mine, (), "model_name", labels[label], path)
            if display_name is not None:
                problem = f"the label {label} names the model, and the run the job: this name is passed over"
                self._warn(where, problem, found=shown(display_name))
        elif isinstance(display_name, str) and display_name.strip():
            self._put(mine, (), "model_name", self._legal(display_name, where), where)
        elif display_name is not None and not isinstance(display_name, str):
            self._put(mine, (), "model_name", display_name, where)
        elif name is not None:
            self._put(mine, (), "model_name", name, where)
        else:
            self._put(mine, (), "model_name", None, where)
            fault = Fault(
                path=json_path(where),
                problem="nothing names the model",
                allowed="displayName, or the label model_name; a dropped file is a name, too",
                repair="write displayName: NAME beside the job's other keys",
            )
            self._faults.append(fault)

    def _legal(self, display_name: str, where: Path) -> str:
        legal = model_name_from(display_name)
        if legal != display_name:
            problem = f"no name of a model: the model is called {legal}"
            self._warn(where, problem, found=shown(display_name), repair="the label model_name names it, too")
        return legal
