"""What a replica sees at which path: the image's files, the buckets under /gcs, the host for the rest.

Two ways to show it, chosen once:
- private mounts: a namespace with a root of its own. Image files lie read-only at their image paths in
  directories that are the replica's own, so nothing it writes there reaches the source tree.
- no namespace: the same layout made of symbolic links under a scratch directory.

The steps are worked out here; `trainmaster/local/jobs/replicas/launch.py` only carries them out, inside the replica's process.
"""

import os
import posixpath
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from trainmaster.local.jobs.images.dockerfile import Copy, Image

LAUNCHER = Path(__file__).with_name("launch.py")

Node = Path | dict[str, "Node"]
"""A host path to be seen here, or a directory of the replica's own with what is seen in it."""

Step = tuple[Literal["dir"], str] | tuple[Literal["link", "bind", "bind-ro", "bind-if-there"], str, str]
"""`dir path`, or `link|bind|bind-ro|bind-if-there host-path path`; paths are relative to the new root.

`bind-if-there` is for the host's own entries: a shared directory such as /tmp may lose some at any moment.
"""

_NOT_IN_AN_IMAGE = frozenset({".git"})


def can_mount() -> bool:
    """Whether this machine lets this user make a mount namespace. Takes some 30 ms."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCHER), "--probe"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def layout(image: Image) -> dict[str, Node]:
    """The image's own part of the tree, from its root."""
    root: dict[str, Node] = {}
    _directory(root, image.workdir)
    for copy in image.copies:
        _place_copy(root, image, copy)
    return root


def private_steps(image: Image, buckets: Path) -> list[Step]:
    """What builds the private root: the image's files, `/gcs`, and the host's own entries around them."""
    root = layout(image)
    root["gcs"] = buckets
    return list(_mounted(root, Path("/"), ""))


def linked_steps(image: Image) -> list[Step]:
    """What builds the scratch copy of the layout out of symbolic links."""
    return list(_linked(layout(image), ""))


def _place_copy(root: dict[str, Node], image: Image, copy: Copy) -> None:
    found = [path for pattern in copy.sources for path in _matches(image.tree, pattern)]
    into = copy.into or len(found) > 1 or copy.target == image.workdir
    for path in found:
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
    relative = posixpath.normpath("/" + pattern).lstrip("/")  # nothing above the build context can be copied
    return sorted(tree.glob(relative)) if relative else [tree]


def _directory(root: dict[str, Node], path: str) -> dict[str, Node]:
    here = root
    for part in (part for part in path.split("/") if part):
        there = here.get(part)
        if not isinstance(there, dict):
            there = _opened(there) if there is not None else {}
            here[part] = there
        here = there
    return here


def _opened(path: Path) -> dict[str, Node]:
    return {child.name: child for child in path.iterdir()} if path.is_dir() else {}


def _merge(directory: dict[str, Node], name: str, path: Path) -> None:
    before = directory.get(name)
    if before is None or not path.is_dir() or (isinstance(before, Path) and not before.is_dir()):
        directory[name] = path
        return
    merged = _opened(before) if isinstance(before, Path) else before
    directory[name] = merged
    for child in path.iterdir():
        _merge(merged, child.name, child)


def _linked(directory: Mapping[str, Node], at: str) -> Iterator[Step]:
    yield "dir", at
    for name, node in directory.items():
        if isinstance(node, dict):
            yield from _linked(node, f"{at}{name}/")
        else:
            yield "link", str(node), at + name


def _mounted(directory: Mapping[str, Node], host: Path, at: str) -> Iterator[Step]:
    yield "dir", at
    for entry in _entries(host):
        if entry.name in directory:
            continue
        if not entry.is_symlink():
            yield "bind-if-there", entry.path, at + entry.name
        elif (target := _link_target(entry.path)) is not None:
            yield "link", target, at + entry.name
    for name, node in directory.items():
        if isinstance(node, dict):
            yield from _mounted(node, host / name, f"{at}{name}/")
        else:
            yield "bind" if at + name == "gcs" else "bind-ro", str(node), at + name


def _link_target(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except FileNotFoundError:
        return None


def _entries(host: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(host) as found:
            return sorted(found, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
