"""Builds jobs of AI Platform Training, and the bodies of Vertex AI that they should become."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

MODELS = "gs://models"
IMAGE = "gcr.io/my-project/census:1"
CPU = "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest"
GPU = "us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-17.py310:latest"
PACKAGES = "gs://my-project-data/trainer-0.1.tar.gz"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A job as its user wrote it, the job spec or tuning body of Vertex AI, and the user's warnings."""

    name: str
    written: Mapping[str, Any]
    becomes: Mapping[str, Any]
    told: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


def read(text: str) -> dict[str, Any]:
    """A mapping as its user wrote it, in YAML."""
    written: dict[str, Any] = yaml.safe_load(text)
    return written


def container(**fields: object) -> dict[str, Any]:
    return {"containerSpec": {"imageUri": IMAGE, **fields}}


def package(image: str = CPU, **fields: object) -> dict[str, Any]:
    spec = {"executorImageUri": image, "packageUris": [PACKAGES], "pythonModule": "trainer.task", **fields}
    return {"pythonPackageSpec": spec}


def pool(machine: str, count: int, program: Mapping[str, Any], **fields: object) -> dict[str, Any]:
    spec: dict[str, Any] = {"machineType": machine}
    spec |= {key: fields.pop(key) for key in ("acceleratorType", "acceleratorCount") if key in fields}
    return {"machineSpec": spec, "replicaCount": str(count), **program, **fields}


def spec(*pools: Mapping[str, Any], **fields: object) -> dict[str, Any]:
    output = {"outputUriPrefix": f"{MODELS}/census/run-1"}
    return {"workerPoolSpecs": list(pools), "baseOutputDirectory": output, **fields}


def with_image(**fields: object) -> dict[str, Any]:
    """A job of an image that has said whether it reads chief or master."""
    master: Any = fields.pop("masterConfig", {})
    written = {"masterConfig": {"imageUri": IMAGE, **master}, "useChiefInTfConfig": True, **fields}
    return {"labels": {"model_name": "census"}, "trainingInput": written}


def with_packages(**fields: object) -> dict[str, Any]:
    written = {
        "runtimeVersion": "2.11",
        "pythonVersion": "3.7",
        "packageUris": [PACKAGES],
        "pythonModule": "trainer.task",
    }
    return {"labels": {"model_name": "census"}, "trainingInput": {**written, **fields}}


def custom(text: str = "{}", **fields: object) -> dict[str, Any]:
    """A job of machines with these fields, in YAML or as they are."""
    return with_image(**{"scaleTier": "CUSTOM", "masterType": "n1-standard-4", **read(text), **fields})


def tuning_of(study: Mapping[str, Any], trial: Mapping[str, Any], **counts: int) -> dict[str, Any]:
    defaults = {"maxTrialCount": 1, "parallelTrialCount": 1, "maxFailedTrialCount": 0}
    return {"studySpec": study, **defaults, **counts, "trialJobSpec": trial}


ONE = pool("n1-standard-4", 1, container())
