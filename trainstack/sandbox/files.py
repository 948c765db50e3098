"""Performs the steps that build a program's file tree; `trainstack.jobs.replicas.rootfs` plans them.

Paths of the tree are relative to its root:

- `dir PATH`
- `link TEXT PATH`: a symbolic link
- `bind SOURCE PATH`, `bind-ro SOURCE PATH`: a file or directory of this machine
- `bind-if-there SOURCE PATH`, `bind-ro-if-there SOURCE PATH`: the same, unless it has gone, as entries of shared
  directories may at any time
- `tmpfs PATH`, `proc PATH`, `devpts PATH`: a new file system
- `sys PATH`: this machine's devices and settings in /sys
- `read-only PATH`: a mount of the tree, without those below it
"""

import os

from trainstack.sandbox import syscalls

TYPE_CHECKING = False  # avoids the cost of importing typing
if TYPE_CHECKING:
    from collections.abc import Callable

_OF_EVERYBODY, _WRITABLE = 0o044, 0o222
_HIDDEN_IN_SYS = (
    "devices/virtual/powercap",
    "firmware",
    "fs/bpf",
    "fs/pstore",
    "kernel/config",
    "kernel/debug",
    "kernel/security",
    "kernel/tracing",
)
"""Where root reads what the kernel and other programs do."""


def build(root: str, steps: "list[list[str]]") -> None:
    """Raises `OSError`."""
    for kind, *words in steps:
        _PERFORM[kind](*words[:-1], os.path.join(root, words[-1]))


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
    """The processes of this PID namespace alone.

    The machine's settings are read-only, and what only root may read is empty: root owns them in every namespace.
    """
    os.makedirs(path, exist_ok=True)
    syscalls.mount("proc", path, "proc", syscalls.NOSUID | syscalls.NODEV | syscalls.NOEXEC)
    with os.scandir(path) as entries:
        of_the_machine = [file for file in entries if not file.name.isdigit() and not file.is_symlink()]
    for entry in of_the_machine:
        if entry.is_dir():
            _cover(entry.path, entry.path)
            continue
        mode = entry.stat().st_mode
        if not mode & _OF_EVERYBODY:
            _cover("/dev/null", entry.path)
        elif mode & _WRITABLE:
            _cover(entry.path, entry.path)


def _sys(path: str) -> None:
    _bind_read_only("/sys", path)
    for name in _HIDDEN_IN_SYS:
        hidden = os.path.join(path, name)
        if os.path.isdir(hidden):
            syscalls.mount("tmpfs", hidden, "tmpfs", syscalls.RDONLY)


def _cover(source: str, path: str) -> None:
    syscalls.mount(source, path, None, syscalls.BIND | syscalls.REC)
    syscalls.make_read_only(path)


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
    "link": os.symlink,
    "bind": _bind,
    "bind-ro": _bind_read_only,
    "bind-if-there": _bind_if_there,
    "bind-ro-if-there": _bind_read_only_if_there,
    "tmpfs": _tmpfs,
    "proc": _proc,
    "sys": _sys,
    "devpts": _devpts,
    "read-only": _read_only,
}
