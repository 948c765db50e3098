"""A replica's file tree: the image's files, the buckets under /gcs, and files of this machine.

There are three ways to set it up, chosen once:

- confined: a private root with system directories, the program's Python and the image's files, all read-only at their
  paths; the buckets that the job's account may use; and nothing else of this machine.
- private: the same with all of this machine's files, and every bucket. The image's files are in directories of the
  replica alone, so nothing it writes there reaches the source tree.
- linked: the same layout as symbolic links under a scratch directory, without any namespace.

This module plans the steps; `trainstack.sandbox.files` performs them inside the replica's process.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainstack.jobs.images.dockerfile import DockerfileImage
from trainstack.jobs.images.layout import Node, layout

Step = tuple[str, ...]
"""As `trainstack.sandbox.files` describes them."""

SYSTEM = ("bin", "etc", "lib", "lib32", "lib64", "libx32", "nix", "opt", "sbin", "usr")
"""The directories of programs and libraries, which a confined replica sees too."""
_DEVICES = ("full", "null", "random", "tty", "urandom", "zero")
_ACCELERATORS = ("accel", "dri", "dxg", "kfd", "nvidia", "vfio")
"""Prefixes of the names of GPUs' and TPUs' devices."""
_OWN = ("dev", "gcs", "proc", "sys")
_PROCESSES = "/proc"
"""Each replica has a new one, with its own processes alone."""


@dataclass(frozen=True, kw_only=True)
class BucketShare:
    """A bucket or a folder in it, that a replica sees below /gcs at the same place as below the buckets' directory."""

    path: str
    writable: bool


@dataclass(frozen=True, kw_only=True)
class ReplicaView:
    """What a confined replica sees of this machine besides system directories.

    Attributes:
        buckets: the directory whose folders are the buckets.
        shares: what it sees of that directory; None for all of it, with buckets that are made later.
        read_only: files and directories, each at its path.
        writable: directories, each at its path.
        tmp: the directory that is its /tmp.
        hidden: a directory that it does not see even within a system directory or the image's source folder.
    """

    buckets: Path
    shares: tuple[BucketShare, ...] | None
    read_only: tuple[Path, ...]
    writable: tuple[Path, ...]
    tmp: Path
    hidden: Path


def confined_steps(image: DockerfileImage, view: ReplicaView) -> list[Step]:
    """Steps that build the root of a confined replica."""
    root = {name: node for name, node in layout(image).items() if name not in _OWN}
    inner = list(_remove(root, view.hidden, ""))
    for path in view.read_only:
        _place(root, path)
    return [
        *(("dir", name) for name in ("", "var/tmp", "run")),
        ("bind", str(view.tmp), "tmp"),
        *_system(image, root),
        *_hiding(view.hidden),
        *(("tmpfs", path) for path in inner),
        ("proc", "proc"),
        ("sys", "sys"),
        *_devices(),
        *(("bind", str(path), str(path).strip("/")) for path in view.writable),
        *(("bind-ro", str(path), str(path).strip("/")) for path in view.read_only if _is_below(path, view.hidden)),
        *_buckets(view),
    ]  # fmt: skip


def private_steps(image: DockerfileImage, buckets: Path) -> list[Step]:
    """Steps that build the private root: the image's files, `/gcs`, and the host's entries around them."""
    root = layout(image)
    root["gcs"] = buckets
    return [*_mount_steps(image, root, Path("/"), "", "bind-if-there"), ("proc", "proc")]


def linked_steps(image: DockerfileImage) -> list[Step]:
    """Steps that build the layout from symbolic links in the scratch directory."""
    return list(_link_steps(layout(image), ""))


def _link_steps(directory: Mapping[str, Node], prefix: str) -> Iterator[Step]:
    yield "dir", prefix
    for name, node in directory.items():
        if isinstance(node, dict):
            yield from _link_steps(node, f"{prefix}{name}/")
        else:
            yield "link", str(node), prefix + name


def _system(image: DockerfileImage, root: dict[str, Node]) -> Iterator[Step]:
    for name in SYSTEM:
        path = Path("/", name)
        if path.is_symlink() and name not in root:
            yield "link", str(path.readlink()), name
        elif path.is_dir():
            node = root.pop(name, {})
            if node:
                directory = node if isinstance(node, dict) else {}
                yield from _mount_steps(image, directory, path, f"{name}/", "bind-ro-if-there")
            else:
                yield "bind-ro", str(path), name
    yield from _mount_steps(image, root, None, "", "")


def _remove(directory: dict[str, Node], hidden: Path, prefix: str) -> Iterator[str]:
    """Take the hidden directory out of an image's files; where it lies deeper in a folder of them, return its path.

    A `COPY . .` beside a stack's state folder would bring it into the image.
    """
    for name, node in list(directory.items()):
        if isinstance(node, dict):
            yield from _remove(node, hidden, f"{prefix}{name}/")
        elif node == hidden:
            del directory[name]
        elif hidden.is_relative_to(node):
            yield f"{prefix}{name}/{hidden.relative_to(node)}"


def _place(root: dict[str, Node], path: Path) -> None:
    """Add a path of this machine where neither the image nor a path above it is."""
    *folders, name = path.parts[1:]
    here = root
    if path.parts[1] in SYSTEM:  # /usr itself, too, which is the base of the system's own Python
        return
    for part in folders:
        there = here.setdefault(part, {})
        if not isinstance(there, dict):
            return
        here = there
    here.setdefault(name, path)


def _is_below(path: Path, folder: Path) -> bool:
    return folder.parts[1:2] != () and folder.parts[1] in SYSTEM and path.is_relative_to(folder)


def _hiding(folder: Path) -> Iterator[Step]:
    if _is_below(folder, folder):
        yield "tmpfs", str(folder).strip("/")


def _devices() -> Iterator[Step]:
    yield "tmpfs", "dev"
    for entry in _entries(Path("/dev")):
        if entry.name in _DEVICES or entry.name.startswith(_ACCELERATORS):
            # A device can be written to, but a program of root's owns its file and could change its mode.
            yield "bind-ro-if-there", entry.path, f"dev/{entry.name}"
    yield "tmpfs", "dev/shm"
    yield "devpts", "dev/pts"
    yield "link", "pts/ptmx", "dev/ptmx"
    for name, target in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        yield "link", f"/proc/self/{target}", f"dev/{name}"


def _buckets(view: ReplicaView) -> Iterator[Step]:
    if view.shares is None:
        yield "bind", str(view.buckets), "gcs"
        return
    yield "tmpfs", "gcs"
    for share in view.shares:
        yield "bind" if share.writable else "bind-ro", str(view.buckets / share.path), f"gcs/{share.path}"
    yield "read-only", "gcs"  # what is written beside the buckets would be lost


def _mount_steps(
    image: DockerfileImage,
    directory: Mapping[str, Node],
    host: Path | None,
    prefix: str,
    kind: str,
    *,
    covers: bool = False,
) -> Iterator[Step]:
    """The directory's entries, and by steps of this kind those of `host` around them.

    With `covers`, the tree has all of `host` here already, and what the image changes has to cover it.
    """
    if host and prefix and _leads_on(image, directory, host):
        if not covers:
            yield kind, str(host), prefix
        covers = True
    else:
        yield "tmpfs" if covers else "dir", prefix
        covers = False
        yield from _around(directory, host, prefix, kind)
    for name, node in directory.items():
        if isinstance(node, dict):
            yield from _mount_steps(
                image, node, host / name if host else None, f"{prefix}{name}/", kind, covers=covers
            )
        else:
            yield "bind" if prefix + name == "gcs" else "bind-ro", str(node), prefix + name


def _leads_on(image: DockerfileImage, directory: Mapping[str, Node], host: Path) -> bool:
    """Whether the image has nothing of its own here, but only in deeper directories that the host has too.

    Then one mount brings all that is around them. A mount for each entry would be thousands for /usr/bin, and the
    kernel allows 100,000 (fs.mount-max).
    """
    return bool(directory) and str(host) != image.workdir and all(
        isinstance(node, dict) and (host / name).is_dir() and not (host / name).is_symlink()
        for name, node in directory.items()
    )  # fmt: skip


def _around(directory: Mapping[str, Node], host: Path | None, prefix: str, kind: str) -> Iterator[Step]:
    for entry in _entries(host) if host else ():
        if entry.name in directory or entry.path == _PROCESSES:
            continue
        if not entry.is_symlink():
            yield kind, entry.path, prefix + entry.name
        elif (target := _link_target(entry.path)) is not None:
            yield "link", target, prefix + entry.name


def _link_target(path: str) -> str | None:
    try:
        return str(Path(path).readlink())
    except FileNotFoundError:
        return None


def _entries(host: Path) -> Iterable["os.DirEntry[str]"]:
    try:
        with os.scandir(host) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []
