"""Packages of well-known base images, and those that stand for them on this machine.

Sources: https://hub.docker.com/_/python, https://hub.docker.com/r/tensorflow/tensorflow,
https://hub.docker.com/r/pytorch/pytorch, https://docs.nvidia.com/deeplearning/frameworks/support-matrix/,
https://cloud.google.com/deep-learning-containers/docs/choosing-container and
https://cloud.google.com/vertex-ai/docs/training/pre-built-containers, read 2026-11.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_HUB = r"(docker\.io/)?(library/)?"
_GOOGLES = (
    r"(gcr\.io/deeplearning-platform-release"
    r"|(us|europe|asia)-docker\.pkg\.dev/(deeplearning-platform-release/gcr\.io|vertex-ai/training))"
)
_ANY = r"([:@].*)?"
_ON = r"[-a-z0-9]+"  # cpu, gpu, tpu, cu123, xla
_DASHED = r"(\.(?P<version>\d+-\d+))?.*"
_SCIENCE = ("pandas", "scikit-learn", "matplotlib", "pillow")
_Row = tuple[str, tuple[str, ...], tuple[str, ...]]
_ROWS: Sequence[_Row] = (
    (rf"scratch|{_HUB}(alpine|busybox|debian|ubuntu|python|buildpack-deps){_ANY}", (), ()),
    (rf"{_HUB}(continuumio/(ana|mini)conda3|condaforge/miniforge3){_ANY}", (), ()),
    (rf"{_HUB}nvidia/cuda{_ANY}|gcr\.io/distroless/[-a-z0-9]+{_ANY}|ghcr\.io/astral-sh/uv{_ANY}", (), ()),
    (rf"{_GOOGLES}/base-{_ON}.*", (), _SCIENCE),
    (rf"{_HUB}tensorflow/tensorflow(:(?P<version>\d+\.\d+).*|{_ANY})", ("tensorflow",), ()),
    (
        rf"{_GOOGLES}/tf2?-{_ON}{_DASHED}",
        ("tensorflow", "tensorflow-datasets", "google-cloud-storage"),
        _SCIENCE,
    ),
    (rf"nvcr\.io/nvidia/tensorflow{_ANY}", ("tensorflow",), _SCIENCE),
    (rf"{_HUB}pytorch/pytorch(:(?P<version>\d+\.\d+).*|{_ANY})", ("torch",), ("torchvision",)),
    (
        rf"{_GOOGLES}/pytorch-{_ON}{_DASHED}",
        ("torch", "google-cloud-storage"),
        ("torchvision", *_SCIENCE),
    ),
    (rf"nvcr\.io/nvidia/pytorch{_ANY}", ("torch",), ("torchvision", *_SCIENCE)),
    (
        rf"{_GOOGLES}/(scikit-learn|sklearn)-{_ON}{_DASHED}",
        ("scikit-learn", "google-cloud-storage"),
        ("pandas",),
    ),
    (
        rf"{_GOOGLES}/xgboost-{_ON}{_DASHED}",
        ("xgboost", "scikit-learn", "google-cloud-storage"),
        ("pandas",),
    ),
)
_EXPRESSIONS = tuple((re.compile(pattern), needed, more) for pattern, needed, more in _ROWS)
_PYTHONS = (
    re.compile(r".*\bpython:?(?P<python>3\.\d+).*"),
    re.compile(r".*[.-]py(?P<python>3\d+)\b.*"),
)
_LAST_WITH_KERAS_2 = (2, 15)
EXAMPLES = (
    "python:3.11, debian:12, nvidia/cuda:…, tensorflow/tensorflow:2.16.1, pytorch/pytorch:…, and Google's Deep Learning "
    "Containers and prebuilt training containers"
)


@dataclass(frozen=True, kw_only=True)
class Base:
    """What an image begins with.

    Attributes:
        name: the image.
        needed: distributions that it brings and that no environment may lack, the one that it is named after first.
        more: distributions that it brings too.
        version: of the first that is needed, as far as the name says: `2.7`; empty where it does not.
        python: likewise, `3.10`.
    """

    name: str
    needed: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    version: str = ""
    python: str = ""

    @property
    def has_keras_2(self) -> bool:
        """Whether `tf.keras` is Keras 2 there. TensorFlow 2.16 and later have it with tf-keras and a variable."""
        if self.needed[:1] != ("tensorflow",) or not self.version:
            return False
        major, minor = map(int, self.version.split("."))
        return (major, minor) <= _LAST_WITH_KERAS_2

    @property
    def variables(self) -> dict[str, str]:
        """What a program finds in its environment."""
        return {"TF_USE_LEGACY_KERAS": "1"} if self.has_keras_2 else {}


def base_of(name: str) -> Base | None:
    """What a base image brings; None for one that is not known here."""
    for expression, needed, more in _EXPRESSIONS:
        if match := expression.fullmatch(name):
            version = (match.groupdict().get("version") or "").replace("-", ".")
            base = Base(name=name, needed=needed, more=more, version=version, python=_python_of(name))
            return replace(base, needed=(*needed, "tf-keras")) if base.has_keras_2 else base
    return None


def _python_of(name: str) -> str:
    for expression in _PYTHONS:
        if match := expression.fullmatch(name):
            text = match["python"]
            return text if "." in text else f"{text[0]}.{text[1:]}"
    return ""
