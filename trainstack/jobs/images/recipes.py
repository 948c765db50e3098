"""The recipe of an image's Python environment: its base's packages, and those that its RUN lines install."""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from trainstack.jobs.images.dockerfile import DockerfileImage, ImageError, repository_of
from trainstack.jobs.images.installs import Install, installs_of
from trainstack.jobs.images.layout import Node
from trainstack.jobs.images.views import IN_EVERY_IMAGE

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
    """What a base image brings; None for one that is not known here.

    Sources: https://hub.docker.com/_/python, https://hub.docker.com/r/tensorflow/tensorflow,
    https://hub.docker.com/r/pytorch/pytorch, https://docs.nvidia.com/deeplearning/frameworks/support-matrix/,
    https://cloud.google.com/deep-learning-containers/docs/choosing-container and
    https://cloud.google.com/vertex-ai/docs/training/pre-built-containers, read 2026-11.
    """
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


PACKAGES_LABEL = "trainstack.packages"
"""Names the packages of an image's own program in place of its RUN lines."""
MAX_TREE_FILES = 20_000
MAX_TREE_BYTES = 1024**3
_NOTE_CHARACTERS = 300

_LEFT_OUT = frozenset({".git", ".trainmaster", ".venv", "__pycache__", "node_modules"})
_HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an environment is made from.

    Attributes:
        not_done: instructions of the Dockerfile that nothing here carries out.
        at_hand: distributions that the image also has, and that are used where the stack's own environment has them.
        notes: further lines for the job's log about the Dockerfile.
        key: stands for the content of all that it is made from.
    """

    base: Base
    installs: tuple[Install, ...]
    not_done: tuple[str, ...] = ()
    at_hand: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    key: str

    @property
    def requirements(self) -> Iterator[str]:
        """All packages by which the image is made, in the words of requirement files; paths and options are among them."""
        yield from (*IN_EVERY_IMAGE, *self.base.needed, *self.base.more, *self.at_hand)
        for install in self.installs:
            yield from (*install.words, *install.content)

    @property
    def whose(self) -> str:
        """What the environment is made for, as messages call it."""
        return "the script" if any(install.is_of_script for install in self.installs) else "the image"

    @property
    def python_difference(self) -> str | None:
        """Which Python stands for the base image's, where they differ."""
        if not self.base.python or self.base.python == _HERE:
            return None
        return f"Python {_HERE} stands for Python {self.base.python} of the base image {self.base.name}."

    def differences(self, version_of: Callable[[str], str | None]) -> Iterator[str]:
        """In what an environment with these versions of distributions differs from the base image, in words."""
        base = self.base
        if self.python_difference:
            yield self.python_difference
        if base.version:
            name = base.needed[0]
            yield f"{name} {version_of(name)} stands for {name} {base.version} of the base image {base.name}."
        if base.has_keras_2:
            yield "tf.keras is Keras 2 there: TF_USE_LEGACY_KERAS=1 and tf-keras make it so here."
        if lacking := [name for name in base.more if version_of(name) is None]:
            yield (
                f"The base image {base.name} also brings {', '.join(lacking)}, which the stack's own environment lacks. "
                f"A line `RUN pip install {lacking[0]}` in the Dockerfile gives the image an environment that has them all."
            )

    def omissions(self) -> list[str]:
        """What of the Dockerfile is not done, in words."""
        lines = [f"Not done here, from the Dockerfile: {line:.{_NOTE_CHARACTERS}}" for line in self.not_done]
        if lines:
            lines.append("If the program needs them, build the image and run it with --runtime container.")
        return [*lines, *self.notes]


def recipe_of(image: DockerfileImage, script: Sequence[Install] | None = None) -> Recipe:
    """The recipe of an image, or of a script that runs in it: `script` is what its requirements.txt asks for.

    The packages that the image's label names for its own program are not installed for a script, but linked where the
    stack's own environment has them; a note names the others. Reads the files that the image's RUN lines name.

    Raises:
        ImageError: the base is not known here, or a file is too large.
    """
    base, packages = _known_base(image.base), image.labels.get(PACKAGES_LABEL)
    if packages is None:
        installs, not_done = installs_of(image)
        return _recipe(base, [*installs, *(script or ())], (*not_done, *image.not_done))
    if script is None:
        return _recipe(replace(base, needed=(*base.needed, *packages.split())), [])
    at_hand = tuple(packages.split())
    lacking = [name for name in at_hand if not any(distributions(name=name))]
    note = (
        f"The image has {', '.join(lacking)}, and the stack's own environment has not. A script that needs them names them in "
        "its requirements.txt, or install them beside the stack; Trainmaster's trainer needs: pip install 'trainmaster[tensorflow]'."
    )
    return _recipe(base, script, at_hand=at_hand, notes=(note,) if lacking else ())


def _recipe(
    base: Base,
    installs: Sequence[Install],
    not_done: tuple[str, ...] = (),
    *,
    at_hand: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Recipe:
    made_from = [sys.version, sys.base_prefix, base.needed, base.more, at_hand]
    digest = hashlib.sha256(json.dumps(made_from).encode())
    for install in installs:
        words = (install.words, install.content, install.default_index, install.indexes, install.workdir)
        digest.update(repr(words).encode())
        for relative, path in files_of(install.tree) if install.tree is not None else ():
            digest.update(f"\0{relative}\0".encode())
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    key = digest.hexdigest()[:24]
    return Recipe(
        base=base, installs=tuple(installs), not_done=not_done, at_hand=at_hand, notes=notes, key=key
    )


def files_of(node: Node) -> Iterator[tuple[Path, Path]]:
    """The files of a node, each with its path below it; `.` for a node that is one file.

    Raises:
        ImageError: they are too many, or too large together.
    """
    count = size = 0
    for relative, path in _walk(node, Path()):
        count, size = count + 1, size + path.stat().st_size
        if count > MAX_TREE_FILES or size > MAX_TREE_BYTES:
            raise ImageError(
                f"A RUN line installs from the source tree, which has more than {MAX_TREE_FILES} files or "
                f"{MAX_TREE_BYTES // 1024**2} MiB, at {str(path.parent)!r}; COPY only what belongs to the package before that line"
            )
        yield relative, path


def _walk(node: Node, below: Path) -> Iterator[tuple[Path, Path]]:
    if isinstance(node, Path) and node.is_file():
        yield below, node
        return
    children = (
        {path.name: path for path in node.iterdir()} if isinstance(node, Path) and node.is_dir() else node
    )
    if isinstance(children, dict):
        for name in sorted(children.keys() - _LEFT_OUT):
            child = children[name]
            # A link to a directory may lead in circles.
            if not (isinstance(child, Path) and child.is_symlink() and child.is_dir()):
                yield from _walk(child, below / name)


def _known_base(name: str) -> Base:
    base = base_of(name)
    if base is None:
        raise ImageError(
            f"The base image {name!r} is not known here, so what it brings cannot be installed. Known are {EXAMPLES}. "
            f"If you have its source tree: trainmaster stack provide {repository_of(name)}=DIR, where DIR has its Dockerfile; "
            "or build the image and run it with --runtime container"
        )
    return base
