"""The config.yaml of `gcloud ai-platform jobs submit training --config`, or a whole Job, in our own way.

As with every dialect, each place of our own document keeps the place in the text that it came from, and a
key that has no place is a fault. What has no equal today is a fault that names the nearest choice; what is
taken but not quite the same is a warning.

Source: the Job message of gcloud's own client (googlecloudsdk/generated_clients/apis/ml/v1/ml_v1_messages.py)
and https://cloud.google.com/vertex-ai/docs/start/migrating-to-vertex-ai
"""

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path
from trainmaster.orchestrator.core.names import PRIORITY_LABEL, model_name_from
from trainmaster.orchestrator.core.requests.legacy.machines import MachineReading
from trainmaster.orchestrator.core.requests.legacy.programs import ProgramReading
from trainmaster.orchestrator.core.requests.legacy.scheduling import SchedulingReading
from trainmaster.orchestrator.core.requests.legacy.study import StudyReading
from trainmaster.orchestrator.core.requests.legacy.tables import OUTPUT_ONLY
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Translated, number

MODEL_NAME_LABEL = "model_name"
_JOB_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
_SAME = {"serviceAccount": "service_account", "network": "network", "enableWebAccess": "web_access"}


def translated(document: Mapping[str, Any], name: str | None) -> Translated:
    """The training job in our own way; `name` is the model's where the job has neither id nor label."""
    return _Translation().whole(document, name)


class _Translation(MachineReading, ProgramReading, SchedulingReading, StudyReading):
    """One document's translation: the places, faults and warnings found on the way."""

    def whole(self, document: Mapping[str, Any], name: str | None) -> Translated:
        job = Fields(document, ())
        mine: dict[str, Any] = {}
        spec = self._fields(job, "trainingInput")
        if not job.has("trainingInput"):
            self._wrong(spec.path, "missing: what the job trains", repair="write trainingInput: {…}")
        self._places["$"] = json_path(spec.path if job.has("trainingInput") else ())
        self._name(mine, job, name)
        self._past(job)
        self._cluster(mine, spec)
        self._programs(mine, spec)
        self._job_dir(mine, spec)
        self._scheduling(mine, spec)
        self._hyperparameters(mine, spec)
        self._environment(mine, spec)
        for theirs, ours in _SAME.items():
            self._put(mine, (), ours, spec.get(theirs), spec.at(theirs))
        key = self._fields(spec, "encryptionConfig")
        if spec.has("encryptionConfig"):
            self._put(mine, (), "encryption_key", key.get("kmsKeyName"), key.at("kmsKeyName"))
            self._faults += key.unknown()
        region = self._region(spec)
        self._faults += [*job.unknown(), *spec.unknown()]
        return Translated(
            document=mine,
            places=self._places,
            faults=tuple(sorted(self._faults)),
            warnings=tuple(sorted(self._warnings)),
            region=region,
            yielding=("output",) if "output" in mine else (),
        )

    def _name(self, mine: dict[str, Any], job: Fields, name: str | None) -> None:
        labels, job_id = job.get("labels"), job.get("jobId")
        kept = labels if isinstance(labels, Mapping) else {}
        if labels is not None:
            rest = {
                key: value for key, value in kept.items() if key not in (MODEL_NAME_LABEL, PRIORITY_LABEL)
            }
            priority = number(kept.get(PRIORITY_LABEL))
            self._put(mine, (), "priority", priority, (*job.at("labels"), PRIORITY_LABEL))
            self._put(mine, (), "labels", rest if isinstance(labels, Mapping) else labels, job.at("labels"))
        if job.has("jobId"):
            self._job_id(job, job_id, labelled=MODEL_NAME_LABEL in kept)
        if MODEL_NAME_LABEL in kept:
            where = (*job.at("labels"), MODEL_NAME_LABEL)
            self._put(mine, (), "model_name", kept[MODEL_NAME_LABEL], where)
        elif isinstance(job_id, str):
            self._put(mine, (), "model_name", model_name_from(job_id), job.at("jobId"))
        else:
            self._put(mine, (), "model_name", name, job.at("jobId"))
            if name is None and not job.has("jobId"):
                self._wrong(
                    job.at("jobId"),
                    "missing: nothing names the model",
                    repair="write jobId: census_1 or labels: {model_name: census}, or drop the job as a file",
                )

    def _job_id(self, job: Fields, job_id: object, *, labelled: bool) -> None:
        path = job.at("jobId")
        if not isinstance(job_id, str) or not _JOB_ID.fullmatch(job_id):
            allowed = "letters, digits and '_', beginning with a letter, at most 128 characters"
            self._wrong(path, "no possible job id", found="" if job_id is None else job_id, allowed=allowed)
        elif not labelled:
            self._warn(
                path,
                f"it names the model, as {model_name_from(job_id)!r}, and need not be unique any more: "
                "every drop is a run with an id of its own",
                found=job_id,
                repair="labels: {model_name: NAME} gives runs one name by which their models are compared",
            )

    def _past(self, job: Fields) -> None:
        for key in OUTPUT_ONLY:
            if job.has(key):
                self._warn(job.at(key), "the old service wrote this about a past job; it asks for nothing")

    def _job_dir(self, mine: dict[str, Any], spec: Fields) -> None:
        if not spec.has("jobDir"):
            return
        path, job_dir = spec.at("jobDir"), spec.get("jobDir")
        if not isinstance(job_dir, str) or not job_dir.startswith("gs://"):
            self._wrong(path, "not written as it must be", found=job_dir, allowed="gs://BUCKET/PATH")
            return
        mine["output"] = {}
        self._places["$.output"] = self._places["$.output.prefix_uri"] = json_path(path)
        mine["output"]["prefix_uri"] = job_dir
        trials = (
            " Trials share it; the old service added the trial's id." if spec.has("hyperparameters") else ""
        )
        self._warn(
            path,
            "the program is given it as --job-dir; the run's record finds a model only where AIP_MODEL_DIR says."
            + trials,
            found=job_dir,
            repair="export to AIP_MODEL_DIR"
            + (", and keep trials apart by CLOUD_ML_TRIAL_ID" if trials else ""),
        )

    def _environment(self, mine: dict[str, Any], spec: Fields) -> None:
        path, chief = spec.at("useChiefInTfConfig"), spec.get("useChiefInTfConfig")
        if not (chief is None or isinstance(chief, bool)):
            self._wrong(path, "true or false is wanted here", found=chief)
        if "python_package" in mine:
            if chief is False:
                problem = "it is for images only; TF_CONFIG says chief, as with every runtime from 2.1"
                self._warn(path, problem, found=chief)
            return
        if chief is False:
            where = "$.cluster.replica_environment"
            self._places[where] = json_path(path)
            mine["cluster"]["replica_environment"] = "ai_platform"
            self._warn(
                path,
                "the local stack writes TF_CONFIG and CLUSTER_SPEC as AI Platform Training did; Vertex AI does not",
                found=chief,
                repair="in the image, start the program with python -m trainer.launch --framework ai-platform --",
            )
        elif chief is None:
            self._warn(
                path,
                "missing: TF_CONFIG says chief, as Vertex AI's does; AI Platform Training said master",
                repair="a program that needs master: write useChiefInTfConfig: false; else true",
            )

    def _region(self, spec: Fields) -> str | None:
        region = spec.get("region")
        if region is None:
            return None
        if not isinstance(region, str):
            self._wrong(spec.at("region"), "a string is wanted here", found=region)
            return None
        self._places["$.region"] = json_path(spec.at("region"))
        return region
