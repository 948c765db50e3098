"""Bounds on what one replica may take of this machine, as far as this user may set them.

A control group bounds memory and processes, and shares the processors fairly with all else. Where this user may not make
one, the program's user namespace bounds its processes, and the kernel prefers to end it when memory runs out.

Sources: https://docs.kernel.org/admin-guide/cgroup-v2.html, cgroups(7) for version 1, setrlimit(2), proc_pid_oom_score_adj(5).

A plain ssh session cannot make a group; `systemd-run --user --scope` starts the stack in one.
"""

import os

from trainstack.sandbox import syscalls

TYPE_CHECKING = False  # avoids the cost of importing typing
if TYPE_CHECKING:
    from collections.abc import Iterator

_CONTROLLERS = ("memory", "pids", "cpu")
"""A group of `cpu` needs no setting: groups share the processors evenly."""
_MOST_OF_OOM = 500
"""Added to the share of memory, in thousandths, by which the kernel chooses what to end."""
_PROCESSES, _PROCESSES_PER_CPU = 4096, 256
_LEAST_RESERVE = 512 << 20


class ControlGroup:
    """A control group, one folder in each hierarchy: one for all controllers in version 2, one for each in version 1.

    Without any folder where this user may not make one.
    """

    def __init__(self, name: str) -> None:
        """`name` is unique on this machine."""
        self._folders = [made for parents in _places() if (made := _make_group(parents, name))]

    def take(self, pid: int) -> None:
        """Move a process into it, with all that it starts later. Takes milliseconds. Raises `OSError`."""
        try:
            for folder in self._folders:
                syscalls.write_setting(f"{folder}/cgroup.procs", b"%d" % pid)
        except ProcessLookupError:  # it has ended, and said why
            return


def remove_group(name: str) -> bool:
    """Whether no group of this name is left: its processes may not have ended yet."""
    is_left = False
    for parents in _places():
        for parent in parents:
            try:
                os.rmdir(f"{parent}/{name}")
            except FileNotFoundError:
                continue
            except OSError:
                is_left = True
    return not is_left


def be_ended_first() -> None:
    """Have the kernel end this process and all that it starts, before the stack, when memory runs out."""
    try:
        syscalls.write_setting("/proc/self/oom_score_adj", b"%d" % _MOST_OF_OOM)
    except PermissionError:  # something has set more already
        return


def limit_processes() -> None:
    """Of this user in this user namespace; before Linux 5.14 of this user anywhere, and never of root. Raises `OSError`."""
    syscalls.limit_processes(_most_processes())


def _make_group(parents: "list[str]", name: str) -> str:
    """The group's folder in the first of these where this user may make one, with its bounds; else nothing."""
    for parent in parents:
        folder = f"{parent}/{name}"
        try:
            os.mkdir(folder)
        except OSError:
            continue
        for file, most in (
            ("memory.max", _most_memory()),
            ("memory.limit_in_bytes", _most_memory()),
            ("pids.max", _most_processes()),
        ):
            if os.path.exists(f"{folder}/{file}"):
                syscalls.write_setting(f"{folder}/{file}", b"%d" % most)
        return folder
    return ""


def _places() -> "Iterator[list[str]]":
    """For each hierarchy with a controller that is needed, the folders where a group may be made, the best first."""
    groups = dict(_own_groups())
    for kind, controllers, root, mounted in _hierarchies():
        key = "" if kind == "cgroup2" else next((one for one in _CONTROLLERS if one in controllers), None)
        group = None if key is None else groups.get(key)
        if group is None or not f"{group}/".startswith(f"{root.rstrip('/')}/"):
            continue
        folder = f"{mounted}/{group[len(root) :].strip('/')}".rstrip("/")
        yield [folder] if key else list(_that_delegate(folder, mounted))


def _that_delegate(folder: str, top: str) -> "Iterator[str]":
    """In version 2, a group whose controllers work in its children has no processes, so not the stack's own: those above."""
    while True:
        if {b"memory", b"pids"} & _controllers_below(folder):
            yield folder
        if folder == top or "/" not in folder.strip("/"):
            return
        folder = os.path.dirname(folder)


def _controllers_below(folder: str) -> "set[bytes]":
    try:
        with open(f"{folder}/cgroup.subtree_control", "rb") as file:
            return set(file.read().split())
    except OSError:
        return set()


def _own_groups() -> "Iterator[tuple[str, str]]":
    """This process's group for each controller; for "" that of version 2."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        for line in file:
            _number, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in controllers.split(","):
                yield controller, path


def _hierarchies() -> "Iterator[tuple[str, list[str], str, str]]":
    """Of each mount: its kind, controllers, the group at its root, and where it is."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            fields, _, rest = line.partition(" - ")
            kind, _source, options = rest.split(" ", 2)
            if kind in ("cgroup", "cgroup2"):
                root, mounted = fields.split()[3:5]
                yield kind, options.strip().split(","), root, mounted


def _most_memory() -> int:
    """All but a tenth of this machine's, in bytes: the tenth is for the stack and the system."""
    with open("/proc/meminfo", "rb") as file:
        total = int(file.readline().split()[1]) << 10
    return total - max(total // 10, _LEAST_RESERVE)


def _most_processes() -> int:
    """Threads count, too."""
    return max(_PROCESSES, _PROCESSES_PER_CPU * (os.cpu_count() or 1))
