"""What the Python environment of an image is made from: its base's packages, and those that its RUN lines install."""

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from itertools import filterfalse
from pathlib import Path

from packaging.utils import canonicalize_name

from trainmaster.local.jobs.images.bases import EXAMPLES, Base, base_of
from trainmaster.local.jobs.images.declared import declared
from trainmaster.local.jobs.images.dockerfile import Image, ImageError, repository_of
from trainmaster.local.jobs.images.installs import Install, Installation, installs_of
from trainmaster.local.jobs.images.layout import Node
from trainmaster.local.jobs.images.package_runner import by_name, missing
from trainmaster.local.jobs.images.requirements import lines_of, need_of
from trainmaster.local.jobs.images.syncs import Sync
from trainmaster.resources import ROOT

MAX_PROJECT_FILES = 20_000
MAX_PROJECT_BYTES = 1024**3
MAX_NOTES = 20
_NOTE_CHARACTERS = 300

_LEFT_OUT = frozenset({".git", ".trainmaster", ".venv", "__pycache__", "node_modules"})
_OWN_TRAINER = ("tensorflow", "tensorboard", "tensorflow-datasets", "tf-keras")
_BRINGS_UV = re.compile(r"(COPY|ADD) --from=(ghcr\.io/astral-sh|(docker\.io/)?astral)/uv\b")
"""uv is here in any case."""
_HERE = f"{sys.version_info.major}.{sys.version_info.minor}"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an environment is made from.

    Attributes:
        needs: requirements of which it must meet every one; None where this cannot be known before it is made.
        not_done: instructions of the Dockerfile that nothing here carries out.
        notes: further lines for the job's log about the Dockerfile.
        key: stands for the content of all that it is made from.
    """

    base: Base
    installs: tuple[Installation, ...]
    needs: tuple[str, ...] | None
    not_done: tuple[str, ...]
    notes: tuple[str, ...] = ()
    key: str

    def is_met_by(self, have: Mapping[str, Distribution]) -> bool:
        """Whether distributions, by canonical name, are all that is needed."""
        return self.needs is not None and not missing(self.needs, have)

    def differences(self, have: Mapping[str, Distribution]) -> list[str]:
        """In what an environment with these distributions differs from what the base image brings, in words."""
        return [*_versions(self.base, have), *_lacking(self.base, have)]

    @property
    def whose(self) -> str:
        """What the environment is made for, as messages call it."""
        of_script = any(isinstance(each, Install) and each.is_of_script for each in self.installs)
        return "the script" if of_script else "the image"

    @property
    def python_difference(self) -> str | None:
        """Which Python stands for the base image's, where they differ."""
        if not self.base.python or self.base.python == _HERE:
            return None
        return f"Python {_HERE} stands for Python {self.base.python} of the base image {self.base.name}."

    def omissions(self) -> list[str]:
        """What of the Dockerfile is not done, or not in it, in words; at most MAX_NOTES lines of it."""
        found = [f"Not done here, from the Dockerfile: {line:.{_NOTE_CHARACTERS}}" for line in self.not_done]
        if len(found) > MAX_NOTES:
            found[MAX_NOTES:] = [f"… and {len(found) - MAX_NOTES} more of its lines."]
        return [*found, *self.notes]


def recipe_of(image: Image) -> Recipe:
    """Reads the files that the image's RUN lines name.

    Raises:
        ImageError: the base is not known here, or a file is too large.
    """
    if image.tree == ROOT:
        # The locked packages of its Dockerfile are those of the extra `tensorflow`, built for one version of Python.
        return _recipe(Base(name=image.base, needed=_OWN_TRAINER), [], [])
    installs, not_done = installs_of(image)
    base = _known(image.base)
    more = declared(image, installs, not_done, base)
    installs += [more.install] if more.install else []
    return _recipe(base, installs, [*not_done, *filterfalse(_BRINGS_UV.match, image.not_done)], more.notes)


def recipe_of_script(image: Image, install: Install | None) -> Recipe:
    """The recipe of a script that runs in the image; `install` is what its requirements.txt asks for.

    The trainer's own libraries are not installed for a script: where neither its requirements.txt nor the stack's own
    environment has them, a note says so.

    Raises:
        ImageError: as `recipe_of`.
    """
    own = [install] if install else []
    if image.tree == ROOT:
        return _recipe(Base(name=image.base), own, [], tuple(_without_trainer()))
    whole = recipe_of(image)
    return _recipe(whole.base, [*whole.installs, *own], whole.not_done, whole.notes)


def _without_trainer() -> Iterator[str]:
    if lacking := sorted(missing(_OWN_TRAINER, by_name(distributions()))):
        yield (
            f"The trainer's image has {', '.join(lacking)}, and the stack's own environment has not. A script that needs "
            f"them names them in its requirements.txt, or install the stack with its extra: pip install 'trainmaster[tensorflow]'."
        )


def _recipe(
    base: Base, installs: Sequence[Installation], not_done: Sequence[str], notes: tuple[str, ...] = ()
) -> Recipe:
    needs = [*base.needed, *(need for install in installs for need in _needs(install))]
    return Recipe(
        base=base,
        installs=tuple(installs),
        needs=None if None in needs else tuple(need for need in needs if need),
        not_done=tuple(not_done),
        notes=notes,
        key=_key(base, installs),
    )


def files_of(node: Node) -> Iterator[tuple[Path, Path]]:
    """The files of a node, each with its path below it; `.` for a node that is one file.

    Raises:
        ImageError: they are too many, or too large together.
    """
    count = size = 0
    for relative, path in _walk(node, Path()):
        count, size = count + 1, size + path.stat().st_size
        if count > MAX_PROJECT_FILES or size > MAX_PROJECT_BYTES:
            raise ImageError(
                f"What a RUN line installs from the source tree, at {str(path.parent)!r}, has more than "
                f"{MAX_PROJECT_FILES} files or {MAX_PROJECT_BYTES // 1024**2} MiB; COPY only what belongs to the package"
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


def _known(name: str) -> Base:
    base = base_of(name)
    if base is None:
        raise ImageError(
            f"The base image {name!r} is not known here, so what it brings cannot be installed. Known are {EXAMPLES}. "
            f"If you have its source tree: trainmaster stack provide {repository_of(name)}=DIR, where DIR has its Dockerfile; "
            "or build the image and run it with --runtime container"
        )
    return base


def _needs(install: Installation) -> Iterator[str | None]:
    if isinstance(install, Sync):
        yield None
        return
    if (
        install.projects
        or install.links
        or install.constraints
        or install.options
        or install.default_index
        or install.indexes
    ):
        yield None
    lines = (line for path in install.files for line in lines_of(path))
    yield from map(need_of, (*install.requirements, *lines))


def _key(base: Base, installs: Iterable[Installation]) -> str:
    digest = hashlib.sha256(json.dumps([sys.version, sys.base_prefix, base.needed, base.more]).encode())
    for install in installs:
        digest.update(repr(install.words).encode())
        for path in install.files_read:
            digest.update(f"\0{path.name}\0".encode())
            digest.update("\n".join(lines_of(path)).encode())
        for node in install.nodes:
            for relative, path in files_of(node):
                digest.update(f"\0{relative}\0".encode())
                with path.open("rb") as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:24]


def _versions(base: Base, have: Mapping[str, Distribution]) -> Iterator[str]:
    here, there = [], []
    if base.python and base.python != _HERE:
        here.append(f"Python {_HERE}")
        there.append(f"Python {base.python}")
    if base.version:
        here.append(f"{base.needed[0]} {have[canonicalize_name(base.needed[0])].version}")
        there.append(f"{base.needed[0]} {base.version}")
    if here:
        verb = "stands" if len(here) == 1 else "stand"
        yield f"{' and '.join(here)} {verb} for {' and '.join(there)} of the base image {base.name}."
    if base.has_keras_2:
        yield "tf.keras is Keras 2 there: TF_USE_LEGACY_KERAS=1 and tf-keras make it so here."


def _lacking(base: Base, have: Mapping[str, Distribution]) -> Iterator[str]:
    lacking = [name for name in base.more if canonicalize_name(name) not in have]
    if lacking:
        yield (
            f"The base image {base.name} also brings {', '.join(lacking)}, which the stack's own environment lacks. "
            f"A line `RUN pip install {lacking[0]}` in the Dockerfile gives the image an environment that has them all."
        )
