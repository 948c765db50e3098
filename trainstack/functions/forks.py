"""The fork server's work: it forks one process for each order, and reports its end.

An order is a packet on a Unix socket: a process's environment as a JSON object, and four descriptors, which are a pipe
for two numbers of 8 bytes, its standard output, its standard error, and the socket that it serves. The numbers are the
process's id and, when it has ended, its exit code as in `subprocess`. trainstack/process/fork_server.py sends the orders.
"""

import contextlib
import ctypes
import json
import os
import select
import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

ORDER_BYTES = 64 << 10
_DESCRIPTORS = 4
_NUMBER_BYTES = 8
_ENV_START, _ENV_END = 47, 48
"""Fields of /proc/PID/stat after the program's name. Source: proc_pid_stat(5)."""


def take_orders(descriptor: int, load_more: Callable[[], object]) -> int:
    """Return in each forked process, which has the environment and the output of its order, the socket that it serves.

    This process ends when the other end of the socket is closed and its last fork has ended.

    Args:
        descriptor: the socket's.
        load_more: called once when the first fork has ended, which only showed whether the functions can be loaded.
    """
    # By pidfd, which is readable when its process has ended: the process and the pipe for its exit code.
    children: dict[int, tuple[int, int]] = {}
    orders = socket.socket(fileno=descriptor)
    open_orders = {descriptor}
    has_loaded = False
    while open_orders or children:
        ready = _readable([*open_orders, *children])
        for pidfd in ready & children.keys():
            _report(pidfd, *children.pop(pidfd))
            if not has_loaded:
                load_more()
                has_loaded = True
        if ready & open_orders:
            content, descriptors, *_ = socket.recv_fds(orders, ORDER_BYTES, _DESCRIPTORS)
            if not content:
                open_orders.clear()
                continue
            status, *output, served = descriptors
            if (pid := os.fork()) == 0:
                orders.close()
                # The stack notices the server's end by these pipes, so no fork may hold them open.
                _close([status, *children, *(other for _, other in children.values())])
                _become(json.loads(content), output)
                return served
            children[os.pidfd_open(pid)] = pid, status
            os.write(status, pid.to_bytes(_NUMBER_BYTES))
            _close([*output, served])
    os._exit(0)  # skips the teardown of loaded libraries


def _readable(descriptors: Iterable[int]) -> set[int]:
    poll = select.poll()
    for number in descriptors:
        poll.register(number, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll()}


def _report(pidfd: int, pid: int, status: int) -> None:
    _, ended = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(ended)
    with contextlib.suppress(BrokenPipeError):  # the stack no longer asks
        os.write(status, code.to_bytes(_NUMBER_BYTES, signed=True))
    _close([pidfd, status])


def _become(environment: dict[str, str], output: Sequence[int]) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    _show(environment)
    for number, descriptor in enumerate(output, start=1):
        os.dup2(descriptor, number)
    _close(output)


def _show(environment: dict[str, str]) -> None:
    """Write the variables to where /proc/PID/environ reads them: a stack knows its processes by a variable."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    content = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in environment.items())
    if len(content) > end - start:
        raise ValueError(f"the environment has {len(content)} bytes; at most {end - start} are possible")
    ctypes.memmove(start, content.ljust(end - start, b"\0"), end - start)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
