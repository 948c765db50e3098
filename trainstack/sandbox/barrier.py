"""The barrier between a replica's init and its program: a user namespace, which the program is in and init is not.

The kernel lets a process trace another one, or open its memory, files and programs in /proc, only with a capability in
the user namespace of that other one. A program has none in init's, whatever its user is.
"""

import os

from trainstack.sandbox import filter as calls
from trainstack.sandbox import syscalls


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
    """Made before the program's process is forked."""

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
