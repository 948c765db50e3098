"""The running processes that belong to one stack, read from /proc.

Every child gets one environment variable, which its descendants inherit, even after `setsid`, a double fork
or a change of process group. A process started with an empty environment is still found while its parent
lives, because descendants of a marked process count too.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MARK = "TRAINMASTER_STACK"
"""The variable's name; its value is `<stack token>:<number of the child>`."""

CLEAN = b"clean"
"""Sent by a stack to its watcher before it closes the pipe deliberately: no child is being started."""

IGNORED = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)
"""Ctrl-C, a closed terminal and SIGTERM are meant for the stack; its watcher ignores them."""

_PROC = Path("/proc")

_EXEC_S = 1.0
"""How long a scan waits for processes that are between two programs. An exec from a hung file system takes longer."""

_SESSION, _FLAGS, _TIMES, _START, _MEMORY, _CODE_ADDRESS = 3, 6, slice(11, 15), 19, 21, 23
"""Fields 6, 9, 14 to 17, 22, 24 and 26 of /proc/PID/stat (proc_pid_stat(5)), counted as `fields_of` does."""

_TICKS_A_SECOND, _PAGE_BYTES = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

_KERNEL_THREAD = 0x00200000
"""PF_KTHREAD of the flags."""


def members(token: str, *, since: int = 0) -> frozenset[int]:
    """The pids of running processes marked with `token`, and of their descendants.

    Args:
        token: the whole value of the variable, or its part before the colon.
        since: when the first of them started, as `started` has it: the variables of older ones are not read.
    """
    until = time.monotonic() + _EXEC_S
    marked = {
        pid
        for pid in pids()
        if (not since or started(pid) >= since)
        and not _ends_with_its_init(pid)
        and _carries(pid, token, until)
    }
    if not marked:
        return frozenset()
    children: dict[int, list[int]] = {}
    for pid in pids():
        children.setdefault(parent_of(pid), []).append(pid)
    member_pids: set[int] = set()
    waiting = list(marked)
    while waiting:
        pid = waiting.pop()
        if pid not in member_pids:
            member_pids.add(pid)
            waiting += children.get(pid, [])
    return frozenset(pid for pid in member_pids - {os.getpid()} if not _is_zombie(pid))


def end(token: str, *, grace_s: float, empty_scans: int = 1, since: int = 0) -> None:
    """Return when no process marked with `token` is left; `since` is as for `members`.

    Sends SIGTERM, then SIGKILL to those still running after `grace_s` seconds, repeated until none is found.
    A process in a PID namespace below this one gets its SIGTERM from the program that runs it (a sandbox or podman).
    A process between fork and exec still shows the environment of its parent, so after a crash of the parent
    more than one empty scan is needed.
    """
    deadline = time.monotonic() + grace_s
    warned: set[int] = set()
    empty = 0
    while empty < empty_scans:
        pids = members(token, since=since)
        empty = 0 if pids else empty + 1
        if time.monotonic() >= deadline:
            _send(pids, signal.SIGKILL)
        else:
            _send({pid for pid in pids - warned if not _is_confined(pid)}, signal.SIGTERM)
            warned |= pids
        if pids or empty < empty_scans:
            time.sleep(0.02 if pids else 0.1)


def _send(pids: frozenset[int] | set[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def pids() -> Iterator[int]:
    """Every process of this machine."""
    return (int(name) for name in os.listdir(_PROC) if name.isdigit())  # noqa: PTH208  Path objects for every pid double the scan's time


def _carries(pid: int, token: str, until: float) -> bool:
    wanted, environment = f"{MARK}={token}".encode(), _environment(pid, until)
    return wanted in environment and any(
        variable == wanted or variable.startswith(wanted + b":")
        for variable in environment.rstrip(b"\0").split(b"\0")
        if variable.startswith(wanted)
    )


def _environment(pid: int, until: float) -> bytes:
    """The variables that a process started with.

    In execve, the kernel closes files, which tells the parent that the program has started, before it shows the
    new environment. A process that is preempted between the two shows none for a while, and is waited for.
    """
    while not (environment := _read(pid, "environ")):
        is_starting = _is_starting(pid)
        if not is_starting or time.monotonic() >= until:
            return _read(pid, "environ")  # it may have got one since
        time.sleep(0.005)
    return environment


def _is_starting(pid: int) -> bool:
    """Whether it is in execve, before its arguments and environment are in place.

    The kernel sets the address of the code last. Of another user's process it shows 1 instead, and 0 of a
    process without memory, which a kernel thread and a zombie are (do_task_stat in fs/proc/array.c).
    """
    fields = fields_of(pid)
    return (
        len(fields) > _CODE_ADDRESS
        and fields[0] not in (b"Z", b"X")
        and fields[_CODE_ADDRESS] == b"0"
        and not int(fields[_FLAGS]) & _KERNEL_THREAD
    )


def _is_confined(pid: int) -> bool:
    """Whether it is in a PID namespace below this process's."""
    return len(_numbers(pid)) > 1


def _ends_with_its_init(pid: int) -> bool:
    """Whether it is in such a namespace, and not its first process, which is found by its own mark.

    Its environment is not read: that waits for its memory, which a process that forks forever keeps locked.
    """
    numbers = _numbers(pid)
    return len(numbers) > 1 and numbers[-1] != b"1"


def _numbers(pid: int) -> list[bytes]:
    """Its process ids, in this process's PID namespace and those below."""
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"NSpid:"):
            return line.split()[1:]
    return []


def parent_of(pid: int) -> int:
    """The parent's id; 0 if the process is gone."""
    fields = fields_of(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def started(pid: int) -> int:
    """When a process started, in ticks since the machine did; 0 if it is gone."""
    fields = fields_of(pid)
    return int(fields[_START]) if len(fields) > _START else 0


class ProcessStat(NamedTuple):
    """A process as one read of /proc has it: two reads may be of two processes, if the first ends in between."""

    parent: int
    session: int
    cpu_s: float
    """Its processor time, and that of its children that have ended and been waited for; also of a zombie."""
    memory_bytes: int
    """What is not swapped out; 0 of a zombie."""


def stat_of(pid: int) -> ProcessStat | None:
    """None if the process is gone."""
    if len(fields := fields_of(pid)) <= _MEMORY:
        return None
    cpu_s = sum(map(int, fields[_TIMES])) / _TICKS_A_SECOND
    return ProcessStat(int(fields[1]), int(fields[_SESSION]), cpu_s, int(fields[_MEMORY]) * _PAGE_BYTES)


def _is_zombie(pid: int) -> bool:
    return fields_of(pid)[:1] in ([b"Z"], [b"X"], [])


def fields_of(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat after the name: state, parent, process group, …; none if the process is gone."""
    # The second field is the program's name in parentheses, and may have spaces and parentheses.
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    """The file's bytes; empty if the process has ended or access is denied."""
    try:
        with open(f"{_PROC}/{pid}/{name}", "rb", buffering=0) as file:  # noqa: PTH123  as above
            return file.readall()
    except OSError:
        return b""
