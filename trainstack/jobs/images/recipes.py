"""The recipe of an image's Python environment: its base's packages, and those that its RUN lines install."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from pathlib import Path

from trainstack.jobs.images.bases import EXAMPLES, Base, base_of
from trainstack.jobs.images.dockerfile import DockerfileImage, ImageError, repository_of
from trainstack.jobs.images.installs import Install, installs_of
from trainstack.jobs.images.layout import Node
from trainstack.jobs.images.views import IN_EVERY_IMAGE

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


def recipe_of(image: DockerfileImage) -> Recipe:
    """Reads the files that the image's RUN lines name.

    Raises:
        ImageError: the base is not known here, or a file is too large.
    """
    base = _known_base(image.base)
    if (packages := image.labels.get(PACKAGES_LABEL)) is not None:
        return _recipe(replace(base, needed=(*base.needed, *packages.split())), [])
    installs, not_done = installs_of(image)
    return _recipe(base, installs, (*not_done, *image.not_done))


def recipe_of_script(image: DockerfileImage, install: Install | None) -> Recipe:
    """The recipe of a script that runs in the image; `install` is what its requirements.txt asks for.

    The packages that the image's label names for its own program are not installed for a script: where neither its
    requirements.txt nor the stack's own environment has them, a note says so.

    Raises:
        ImageError: as `recipe_of`.
    """
    installs = [install] if install else []
    packages = image.labels.get(PACKAGES_LABEL)
    if packages is None:
        whole = recipe_of(image)
        return _recipe(whole.base, [*whole.installs, *installs], whole.not_done, notes=whole.notes)
    at_hand = tuple(packages.split())
    lacking = [name for name in at_hand if not any(distributions(name=name))]
    note = (
        f"The image has {', '.join(lacking)}, and the stack's own environment has not. A script that needs them names them in "
        "its requirements.txt, or install them beside the stack; Trainmaster's trainer needs: pip install 'trainmaster[tensorflow]'."
    )
    notes = (note,) if lacking else ()
    return _recipe(_known_base(image.base), installs, at_hand=at_hand, notes=notes)


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
