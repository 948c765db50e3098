"""What is between a replica's init and its program: a user namespace, which the program is in and init is not.

The kernel lets a process trace another one, or open its memory, files and programs in /proc, only with a capability in
the user namespace of that other one. A program has none in init's, whatever its user is.
"""

import os

from trainmaster.local.sandbox import filter as calls
from trainmaster.local.sandbox import syscalls


class Barrier:
    """Made before the program's process is forked, so that each side has both pipes."""

    def __init__(self) -> None:
        self._entered, self._mapped = os.pipe(), os.pipe()

    def enter(self) -> None:
        """On the program's side: move into the user namespace, with the same users, and give up what it does not need.

        Returns after init's `admit`. Raises `OSError`.
        """
        syscalls.unshare(syscalls.NEWUSER)
        os.write(self._entered[1], b"e")
        os.close(self._mapped[1])
        if not os.read(self._mapped[0], 1):
            raise OSError("its init has ended")
        syscalls.drop_privileges(syscalls.PROGRAMS_CAPABILITIES)
        calls.refuse_calls()

    def admit(self, program: int) -> None:
        """On init's side: map the program's users, give up all privileges, and let it continue. Raises `OSError`."""
        os.close(self._entered[1])
        if os.read(self._entered[0], 1):  # else it has ended, and said why
            for name in ("uid_map", "gid_map"):
                _write(f"/proc/{program}/{name}", _identity(f"/proc/self/{name}"))
        # Not earlier: the files above would belong to root.
        syscalls.close_to_others()
        syscalls.drop_privileges()
        os.write(self._mapped[1], b"m")


def _identity(path: str) -> bytes:
    """A map of all the ids that this process's own map has, each to itself."""
    with open(path, "rb") as file:
        ranges = [line.split() for line in file]
    return b"\n".join(b"%b %b %b" % (first, first, count) for first, _outside, count in ranges)


def _write(path: str, text: bytes) -> None:
    """In one call: the kernel takes a map in one piece."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
