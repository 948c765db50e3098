"""A replica's file tree: the image's files, the buckets under /gcs, and the host's files for the rest.

There are two ways to set it up, chosen once:
- private mounts: a namespace with a private root. Image files are read-only at their image paths, in
  directories of the replica alone, so nothing it writes there reaches the source tree.
- no namespace: the same layout as symbolic links under a scratch directory.

This module plans the steps; `trainmaster.local.sandbox.files` performs them inside the replica's process.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainmaster.local import sandbox
from trainmaster.local.jobs.images.dockerfile import Image
from trainmaster.local.jobs.images.layout import Node, layout

LAUNCHER = Path(sandbox.__file__).with_name("__main__.py")

Step = tuple[str, ...]
"""As `trainmaster.local.sandbox.files` describes them."""

_PROCESSES = "/proc"
"""Each replica has a new one, with its own processes alone."""


def can_mount() -> bool:
    """Whether this user may create a mount namespace on this machine. Takes about 30 ms."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCHER), "--probe"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def private_steps(image: Image, buckets: Path) -> list[Step]:
    """Steps that build the private root: the image's files, `/gcs`, and the host's entries around them."""
    root = layout(image)
    root["gcs"] = buckets
    return [*_mounted(root, Path("/"), ""), ("proc", "proc")]


def linked_steps(image: Image) -> list[Step]:
    """Steps that build the layout from symbolic links in the scratch directory."""
    return list(_linked(layout(image), ""))


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
        if entry.name in directory or entry.path == _PROCESSES:
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
