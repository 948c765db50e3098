"""The files of an image: a tree of paths of this machine, as the COPY lines of its Dockerfile make it."""

import posixpath
import re
from pathlib import Path

from trainstack.jobs.images.dockerfile import Copy, DockerfileImage, inside

Node = Path | dict[str, "Node"]
"""A host path to be seen here, or a directory of the image's own with what is seen in it."""

_NOT_IN_AN_IMAGE = frozenset({".git"})


def layout(image: DockerfileImage) -> dict[str, Node]:
    """The image's own part of the tree, from its root."""
    root: dict[str, Node] = {}
    _directory(root, image.workdir)
    for copy in image.copies:
        _place_copy(root, copy, workdir=image.workdir)
    return root


def find(image: DockerfileImage, path: str) -> Node | None:
    """What lies at a path of the image, relative to its WORKDIR or absolute; None where no COPY brings it."""
    node: Node = layout(image)
    for part in posixpath.normpath(posixpath.join(image.workdir, path)).split("/"):
        if not part:
            continue
        if isinstance(node, Path):
            node = node / part
        elif (child := node.get(part)) is not None:
            node = child
        else:
            return None
    return node if isinstance(node, dict) or node.exists() else None


def _place_copy(root: dict[str, Node], copy: Copy, *, workdir: str) -> None:
    paths = [path for pattern in copy.sources for path in _matches(copy.tree, pattern)]
    into = copy.into or len(paths) > 1 or copy.target == workdir
    for path in paths:
        if path.is_dir():  # COPY of a directory copies what is in it
            target = _directory(root, copy.target)
            for child in sorted(path.iterdir()):
                if child.name not in _NOT_IN_AN_IMAGE:
                    _merge(target, child.name, child)
        elif into:
            _merge(_directory(root, copy.target), path.name, path)
        else:
            _merge(_directory(root, posixpath.dirname(copy.target)), posixpath.basename(copy.target), path)


def _matches(tree: Path, pattern: str) -> list[Path]:
    relative = str(inside(tree, pattern).relative_to(tree))
    # Two `*` mean one, as to Docker: https://docs.docker.com/reference/dockerfile/#pattern-matching
    return [tree] if relative == "." else sorted(tree.glob(re.sub(r"\*+", "*", relative)))


def _directory(root: dict[str, Node], path: str) -> dict[str, Node]:
    here = root
    for part in (part for part in path.split("/") if part):
        there = here.get(part)
        if not isinstance(there, dict):
            there = _children_of(there) if there is not None else {}
            here[part] = there
        here = there
    return here


def _children_of(path: Path) -> dict[str, Node]:
    return {child.name: child for child in path.iterdir()} if path.is_dir() else {}


def _merge(directory: dict[str, Node], name: str, path: Path) -> None:
    before = directory.get(name)
    if before is None or not path.is_dir() or (isinstance(before, Path) and not before.is_dir()):
        directory[name] = path
        return
    merged = _children_of(before) if isinstance(before, Path) else before
    directory[name] = merged
    for child in path.iterdir():
        _merge(merged, child.name, child)
