"""The policy's `registry`: which models become versions in Vertex AI's Model Registry, and what would serve them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

PREBUILT: Mapping[str, str] = {
    "saved_model": "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest",
    "scikit_learn": "us-docker.pkg.dev/vertex-ai/prediction/sklearn-cpu.1-6:latest",
    "xgboost": "us-docker.pkg.dev/vertex-ai/prediction/xgboost-cpu.2-1:latest",
}
"""Google's newest prebuilt containers for CPUs, by the format of the model. Each region may use each of them.

Source: https://cloud.google.com/vertex-ai/docs/predictions/pre-built-containers, and the list in google-cloud-aiplatform's
constants/prediction.py, read 2026-11.
"""
NONE = "none"


class RegistryMode(StrEnum):
    """Whose models are registered: those of no run, of champions, or of all runs that succeed."""

    OFF = "off"
    CHAMPIONS = "champions"
    ALL = "all"


@dataclass(frozen=True, kw_only=True)
class Registry:
    """`display_name`: what stands for a model in lists. `serving`: the image that serves a format; others have none.

    `smoke`: the alias moves to a version only after a job has loaded the model, and predicted with it.
    """

    mode: RegistryMode = RegistryMode.OFF
    display_name: str = "{model_name}"
    serving: Mapping[str, str] = field(default_factory=lambda: PREBUILT)
    labels: Mapping[str, str] = field(default_factory=dict)
    smoke: bool = False


def normalize_registry(document: object) -> object:
    """The policy's `registry` with `serving` as a mapping of all images, and `off`, which YAML reads as false, as a word."""
    if not isinstance(document, Mapping):
        return document
    serving = document.get("serving", {})
    images = {} if serving == NONE else {**PREBUILT, **serving}
    known = {name: image for name, image in images.items() if image != NONE}
    return {**document, "mode": document["mode"] or RegistryMode.OFF, "serving": known}
