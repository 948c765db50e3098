"""What a replica sees at which path: the image's files, the buckets under /gcs, the host for the rest.

Two ways to show it, chosen once:
- private mounts: a namespace with a root of its own. Image files lie read-only at their image paths in
  directories that are the replica's own, so nothing it writes there reaches the source tree.
- no namespace: the same layout made of symbolic links under a scratch directory.

The steps are worked out here; `trainmaster/local/jobs/replicas/launch.py` only carries them out, inside the replica's process.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from trainmaster.local.jobs.images.dockerfile import Image
from trainmaster.local.jobs.images.layout import Node, layout

LAUNCHER = Path(__file__).with_name("launch.py")

Step = tuple[Literal["dir"], str] | tuple[Literal["link", "bind", "bind-ro", "bind-if-there"], str, str]
"""`dir path`, or `link|bind|bind-ro|bind-if-there host-path path`; paths are relative to the new root.

`bind-if-there` is for the host's own entries: a shared directory such as /tmp may lose some at any moment.
"""


def can_mount() -> bool:
    """Whether this machine lets this user make a mount namespace. Takes some 30 ms."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCHER), "--probe"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.returncode == 0


def private_steps(image: Image, buckets: Path) -> list[Step]:
    """What builds the private root: the image's files, `/gcs`, and the host's own entries around them."""
    root = layout(image)
    root["gcs"] = buckets
    return list(_mounted(root, Path("/"), ""))


def linked_steps(image: Image) -> list[Step]:
    """What builds the scratch copy of the layout out of symbolic links."""
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
