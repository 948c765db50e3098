"""The packages that a base image stands for."""

import pytest

from trainstack.jobs.images.recipes import base_of

DLC = "gcr.io/deeplearning-platform-release"
NEW_DLC = "us-docker.pkg.dev/deeplearning-platform-release/gcr.io"
PREBUILT = "europe-docker.pkg.dev/vertex-ai/training"


@pytest.mark.parametrize(
    ("name", "first", "version", "python", "keras_2"),
    [
        ("python:3.11-slim", None, "", "3.11", False),
        ("docker.io/library/python", None, "", "", False),
        ("ubuntu@sha256:00", None, "", "", False),
        ("nvidia/cuda:12.4.1-runtime-ubuntu22.04", None, "", "", False),
        ("tensorflow/tensorflow:2.7.0-gpu", "tensorflow", "2.7", "", True),
        ("tensorflow/tensorflow:latest-gpu", "tensorflow", "", "", False),
        (f"{DLC}/tf2-cpu.2-7", "tensorflow", "2.7", "", True),
        (f"{DLC}/tf2-gpu.2-5", "tensorflow", "2.5", "", True),
        (f"{NEW_DLC}/tf2-cpu.2-17.py310", "tensorflow", "2.17", "3.10", False),
        ("us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-15.py310:latest", "tensorflow", "2.15", "3.10", True),
        (f"{PREBUILT}/tf-tpu.2-15-pod-py310", "tensorflow", "2.15", "3.10", True),
        ("pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime", "torch", "2.4", "", False),
        (f"{PREBUILT}/pytorch-gpu.2-4.py310:latest", "torch", "2.4", "3.10", False),
        (f"{NEW_DLC}/pytorch-cu124.2-4.py310", "torch", "2.4", "3.10", False),
        ("us-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest", "scikit-learn", "1.6", "", False),
        ("asia-docker.pkg.dev/vertex-ai/training/scikit-learn-cpu.0-23:latest", "scikit-learn", "0.23", "", False),
        ("us-docker.pkg.dev/vertex-ai/training/xgboost-cpu.2-1:latest", "xgboost", "2.1", "", False),
    ],
)  # fmt: skip
def test_a_known_base_brings_packages(
    name: str, first: str | None, version: str, python: str, keras_2: bool
) -> None:
    base = base_of(name)
    assert base is not None
    assert (next(iter(base.needed), None), base.version, base.python) == (first, version, python)
    assert base.variables == ({"TF_USE_LEGACY_KERAS": "1"} if keras_2 else {})
    assert ("tf-keras" in base.needed) == keras_2


@pytest.mark.parametrize(
    "name",
    [
        "my-company/base:1",
        "us-docker.pkg.dev/vertex-ai-restricted/training/reductionserver",
        "evil/python",
        "pythonic:3",
        "scratch2",
        "",
    ],
)
def test_any_other_base_is_not_known(name: str) -> None:
    assert base_of(name) is None
