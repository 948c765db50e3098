"""Performs the steps that build a program's file tree; `trainmaster.local.jobs.replicas.rootfs` plans them.

Paths of the tree are relative to its root:

- `dir PATH`
- `link TEXT PATH`: a symbolic link
- `bind SOURCE PATH`, `bind-ro SOURCE PATH`: a file or directory of this machine
- `bind-if-there SOURCE PATH`, `bind-ro-if-there SOURCE PATH`: the same, unless it has gone, as entries of shared
  directories may at any time
- `tmpfs PATH`, `proc PATH`, `devpts PATH`: a new file system
- `read-only PATH`: a mount of the tree, without those below it
"""

import os

from trainmaster.local.sandbox import syscalls

TYPE_CHECKING = False  # avoids the cost of importing typing
if TYPE_CHECKING:
    from collections.abc import Callable

_PROCS_SETTINGS = ("bus", "fs", "irq", "sys", "sysrq-trigger")
"""What root could change of the machine by way of /proc."""


def build(root: str, steps: "list[list[str]]") -> None:
    """Raises `OSError`."""
    for kind, *words in steps:
        _PERFORM[kind](*words[:-1], os.path.join(root, words[-1]))


def _link(text: str, path: str) -> None:
    os.symlink(text, path)


def _bind(source: str, path: str) -> None:
    if os.path.isdir(source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    syscalls.mount(source, path, None, syscalls.BIND | syscalls.REC)


def _bind_read_only(source: str, path: str) -> None:
    _bind(source, path)
    syscalls.make_read_only(path)


def _bind_if_there(source: str, path: str) -> bool:
    """Whether it is there."""
    try:
        _bind(source, path)
    except FileNotFoundError:
        # Gone since the plan was made; remove its mount point too.
        if os.path.isdir(path):
            os.rmdir(path)
        else:
            os.unlink(path)
        return False
    return True


def _bind_read_only_if_there(source: str, path: str) -> None:
    if _bind_if_there(source, path):
        syscalls.make_read_only(path)


def _tmpfs(path: str) -> None:
    os.makedirs(path, exist_ok=True)
    syscalls.mount("tmpfs", path, "tmpfs", syscalls.NOSUID | syscalls.NODEV)


def _proc(path: str) -> None:
    """The processes of this PID namespace alone; the machine's settings read-only."""
    os.makedirs(path, exist_ok=True)
    syscalls.mount("proc", path, "proc", syscalls.NOSUID | syscalls.NODEV | syscalls.NOEXEC)
    for name in _PROCS_SETTINGS:
        settings = os.path.join(path, name)
        if os.path.exists(settings):
            syscalls.mount(settings, settings, None, syscalls.BIND | syscalls.REC)
            syscalls.make_read_only(settings)


def _devpts(path: str) -> None:
    os.makedirs(path, exist_ok=True)
    options = "newinstance,ptmxmode=0666,mode=0620"
    syscalls.mount("devpts", path, "devpts", syscalls.NOSUID | syscalls.NOEXEC, options)


def _read_only(path: str) -> None:
    kept = os.statvfs(path).f_flag & syscalls.KEPT_FLAGS
    syscalls.mount("none", path, None, syscalls.BIND | syscalls.REMOUNT | syscalls.RDONLY | kept)


def _dir(path: str) -> None:
    os.makedirs(path, exist_ok=True)


_PERFORM: "dict[str, Callable[..., object]]" = {
    "dir": _dir,
    "link": _link,
    "bind": _bind,
    "bind-ro": _bind_read_only,
    "bind-if-there": _bind_if_there,
    "bind-ro-if-there": _bind_read_only_if_there,
    "tmpfs": _tmpfs,
    "proc": _proc,
    "devpts": _devpts,
    "read-only": _read_only,
}
