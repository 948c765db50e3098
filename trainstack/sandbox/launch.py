"""Runs one program in a confinement.

PLAN is a file that `marshal` reads, because the import of `json` would take longer than all else here. It holds
`{"private": bool, "root": a scratch directory, "steps": […], "workdir": path, "argv": […], "grace_s": seconds,
"stack": process id, "name": unique on this machine, "network": null or the descriptors of a user and a network
namespace}`.

With `private`, three processes: this one stays outside, as the child that the stack knows; its child is the first
process of a PID namespace, with a separate file tree; and the program is that one's child.

    stack ── launcher ──│── init ── program ── whatever it starts
                        │

Signals travel from left to right and the exit status from right to left. When init ends, the kernel kills everything
on the right, and init ends with the launcher. Without `private`, the launcher is the program's parent, adopts whatever
loses its parent, and kills it at the end.
Exit status 125 means that the confinement could not be set up, as in `docker run`.
"""

import marshal
import os
import sys

from trainstack.sandbox import files, limits, supervise, syscalls
from trainstack.sandbox import filter as calls


class Gate:
    """Where one process waits for another; made before the fork that separates them."""

    def __init__(self) -> None:
        self._reading, self._writing = os.pipe()

    def open(self) -> None:
        """Let the other process through, which waits or will wait. It is not an error if that one has ended."""
        os.write(self._writing, b"o")

    def wait(self) -> bool:
        """Whether the other process opened the gate; false if it has ended instead."""
        os.close(self._writing)
        return os.read(self._reading, 1) != b""


class Barrier:
    """A user namespace between init and its program, which the program is in; made before the program's process is forked.

    The kernel lets a process trace another one, or open its memory, files and programs in /proc, only with a capability
    in the user namespace of that other one. A program has none in init's, whatever its user is.
    """

    def __init__(self) -> None:
        self._entered, self._mapped = Gate(), Gate()

    def enter(self) -> None:
        """On the program's side: move into the user namespace, with the same users, and give up what it does not need.

        Returns after init's `admit`. Raises `OSError`.
        """
        syscalls.unshare(syscalls.NEWUSER)
        self._entered.open()
        if not self._mapped.wait():
            raise OSError("its init has ended")
        syscalls.drop_privileges(syscalls.PROGRAMS_CAPABILITIES)
        calls.refuse_calls()

    def admit(self, program: int) -> None:
        """On init's side: map the program's users, give up all privileges, and let it continue. Raises `OSError`."""
        if self._entered.wait():  # else it has ended, and said why
            for name in ("uid_map", "gid_map"):
                syscalls.write_setting(f"/proc/{program}/{name}", _identity(f"/proc/self/{name}"))
        # Not earlier: the files above would belong to root.
        syscalls.close_to_others()
        syscalls.drop_privileges()
        self._mapped.open()


def _identity(path: str) -> bytes:
    """A map of all the ids that this process's own map has, each to itself."""
    with open(path, "rb") as file:
        ranges = [line.split() for line in file]
    return b"\n".join(b"%b %b %b" % (first, first, count) for first, _outside, count in ranges)


TYPE_CHECKING = False  # avoids the cost of importing typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NOT_SET_UP = 125
_INITS_GRACE_S = 0.0


def main(arguments: "list[str]") -> int:
    """The program's exit status."""
    try:
        if arguments == ["--probe"]:
            return _probe()
        if arguments[0] == "--network":
            return _network(arguments[1:])
        with open(arguments[0], "rb") as file:
            plan = marshal.load(file)  # noqa: S302  # written by the stack, with this Python
        supervise.hold_signals()
        return _run_confined(plan) if plan["private"] else _run_unconfined(plan)
    except OSError as error:
        return _not_set_up(error)


def _run_confined(plan: "dict[str, Any]") -> int:
    group = limits.ControlGroup(plan["name"])
    _enter_namespaces(plan["network"])
    _follow(plan["stack"])
    taken = Gate()
    init = _fork_child(lambda: _be_init(plan, taken))
    group.take(init)  # while it builds the file tree
    taken.open()
    status = supervise.wait_for(init, grace_s=plan["grace_s"])
    limits.remove_group(plan["name"])
    return status


def _run_unconfined(plan: "dict[str, Any]") -> int:
    files.build(plan["root"], plan["steps"])
    os.chdir(plan["root"] + plan["workdir"])
    syscalls.adopt_orphans()
    _follow(plan["stack"])
    program = _fork_child(lambda: _be_program(plan))
    status = supervise.wait_for(program, grace_s=plan["grace_s"])
    supervise.end_children()
    return status


def _follow(stack: int) -> None:
    """End after the stack, whatever ends it. Entering a user namespace would undo this."""
    syscalls.send_at_parents_end(supervise.PARENT_ENDED)
    if os.getppid() != stack:
        raise OSError(f"the stack, process {stack}, has ended")


def _enter_namespaces(network: "list[int] | None") -> None:
    """Those that the next child is born in, and what setting them up needs."""
    if network:
        _join(*network)
    elif os.getuid() != 0:
        syscalls.enter_user_namespace()
    syscalls.unshare(syscalls.NEWPID | syscalls.NEWIPC)


def _join(user: int, net: int) -> None:
    if os.getuid() != 0:
        syscalls.setns(user, syscalls.NEWUSER)
    syscalls.setns(net, syscalls.NEWNET)
    os.close(user)
    os.close(net)


def _network(ports: "list[str]") -> int:
    from trainstack.sandbox.loopback import send_network  # imports what no replica's start needs

    send_network([int(port) for port in ports])
    return 0


def _be_init(plan: "dict[str, Any]", taken: "Gate | None" = None) -> int:
    """`taken` opens when this process is in its control group."""
    _arrange(plan["root"], plan["steps"])
    os.chdir(plan["workdir"])
    limits.be_ended_first()
    if taken and not taken.wait():
        raise OSError("its launcher has ended")
    barrier = Barrier()
    program = _fork_child(lambda: _be_confined(plan, barrier))
    barrier.admit(program)
    return supervise.wait_for(program, grace_s=_INITS_GRACE_S)


def _be_confined(plan: "dict[str, Any]", barrier: Barrier) -> int:
    barrier.enter()
    limits.limit_processes()
    return _be_program(plan) if plan["argv"] else 0


def _be_program(plan: "dict[str, Any]") -> int:
    os.setsid()
    return supervise.become(plan["argv"])


def _arrange(root: str, steps: "list[list[str]]") -> None:
    syscalls.unshare(syscalls.NEWNS)
    # Later mounts must not be visible outside.
    syscalls.mount("none", "/", None, syscalls.REC | syscalls.PRIVATE)
    syscalls.mount("tmpfs", root, "tmpfs")
    files.build(root, steps)
    syscalls.change_root(root)


def _fork_child(run: "Callable[[], int]") -> int:
    """The process id of a child that ends with the status that `run` returns, and at the latest with this process."""
    reading, writing = os.pipe()
    if pid := os.fork():
        os.close(reading)  # the other end stays open as long as this process lives
        return pid
    os.close(writing)
    status = _NOT_SET_UP
    try:
        syscalls.send_at_parents_end(supervise.KILL)
        os.set_blocking(reading, False)
        if _is_open(reading):
            status = run()
    except (OSError, ValueError, LookupError, TypeError) as error:
        status = _not_set_up(error)
    finally:
        os._exit(status)


def _is_open(reading: int) -> bool:
    """Whether the parent lives: it may have ended before the kernel was asked to report its end."""
    try:
        return os.read(reading, 1) != b""
    except BlockingIOError:
        return True


def _probe() -> int:
    """Whether a confinement is possible here; the reason on standard error."""
    from trainstack.sandbox.loopback import raise_loopback

    supervise.hold_signals()
    _enter_namespaces(None)
    syscalls.unshare(syscalls.NEWNET)
    raise_loopback()
    plan = {"root": "/tmp", "steps": [["proc", "proc"]], "workdir": "/", "argv": []}  # noqa: S108  a mount point
    return supervise.wait_for(_fork_child(lambda: _be_init(plan)), grace_s=_INITS_GRACE_S)


def _not_set_up(error: Exception) -> int:
    sys.stderr.write(f"the container could not be set up: {error}\n")
    sys.stderr.flush()
    return _NOT_SET_UP
