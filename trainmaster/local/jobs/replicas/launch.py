"""Sets up a replica's files, then becomes its program.

Run as `python -I -S launch.py PLAN`, where PLAN is a JSON file: `{"private": bool, "root": scratch directory,
"steps": […], "workdir": path, "argv": […]}`. It imports almost nothing, because it runs before every replica.
Exit statuses 125, 126 and 127 mean what they do in `docker run`: not set up, not executable, not found.
"""

import ctypes
import json
import os
import sys

TYPE_CHECKING = False  # avoids the cost of importing typing
if TYPE_CHECKING:
    from typing import Any

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND, _MS_REC, _MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
_KEPT_FLAGS = (
    2 | 4 | 8 | 1024 | 2048
)  # nosuid nodev noexec noatime nodiratime: a user namespace may not clear them
_NOT_SET_UP, _NOT_EXECUTABLE, _NOT_FOUND = 125, 126, 127

_libc = ctypes.CDLL(None, use_errno=True)


def main(arguments: list[str]) -> int:
    """Does not return on success: the process becomes the program."""
    try:
        if arguments == ["--probe"]:
            _enter_namespace()
            _mount("tmpfs", "/", "tmpfs", 0)
            return 0
        with open(arguments[0], encoding="utf-8") as file:
            plan = json.load(file)
        _arrange(plan)
    except OSError as error:
        sys.stderr.write(f"the container could not be set up: {error}\n")
        return _NOT_SET_UP
    argv = plan["argv"]
    try:
        os.execvp(argv[0], argv)  # noqa: S606  becoming the replica's program is the purpose
    except FileNotFoundError:
        repair = ": args replace the image's CMD, so the program belongs in its ENTRYPOINT"
        sys.stderr.write(
            f"{argv[0]!r}: executable file not found in $PATH{repair if argv[0].startswith('-') else ''}\n"
        )
        return _NOT_FOUND
    except OSError as error:
        sys.stderr.write(f"{argv[0]!r} cannot be executed: {error}\n")
        return _NOT_EXECUTABLE


def _arrange(plan: "dict[str, Any]") -> None:
    root = plan["root"]
    if plan["private"]:
        _enter_namespace()
        _mount("tmpfs", root, "tmpfs", 0)
    for kind, *paths in plan["steps"]:
        if kind == "dir":
            os.makedirs(os.path.join(root, paths[0]), exist_ok=True)
        elif kind == "link":
            os.symlink(paths[0], os.path.join(root, paths[1]))
        elif kind == "bind-if-there":
            _bind_if_there(paths[0], os.path.join(root, paths[1]))
        else:
            _bind(paths[0], os.path.join(root, paths[1]), read_only=kind == "bind-ro")
    if plan["private"]:
        os.chroot(root)
        os.chdir(plan["workdir"])
    else:
        os.chdir(root + plan["workdir"])


def _enter_namespace() -> None:
    user, group = os.getuid(), os.getgid()
    if user == 0:
        _check(_libc.unshare(_CLONE_NEWNS), "unshare")
    else:
        _check(_libc.unshare(_CLONE_NEWNS | _CLONE_NEWUSER), "unshare")
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    # Later mounts must not be visible outside.
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def _bind(source: str, target: str, *, read_only: bool) -> None:
    if os.path.isdir(source):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    _mount(source, target, None, _MS_BIND | _MS_REC)
    if read_only:
        kept = os.statvfs(target).f_flag & _KEPT_FLAGS
        _mount("none", target, None, _MS_BIND | _MS_REMOUNT | _MS_RDONLY | kept)


def _bind_if_there(source: str, target: str) -> None:
    try:
        _bind(source, target, read_only=False)
    except FileNotFoundError:
        # Gone since the plan was made; remove its mount point too.
        if os.path.isdir(target):
            os.rmdir(target)
        else:
            os.unlink(target)


def _mount(source: str, target: str, kind: "str | None", flags: int) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), f"mount {source} on {target}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
