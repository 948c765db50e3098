"""A seccomp filter: the system calls that a program of a job is refused, whatever its user and capabilities are.

They are those that no training program needs and that reach the kernel behind the namespaces: new namespaces, in which
a program has all capabilities again, mounts, keyrings, which belong to a user and not to a namespace, and interfaces
with a history of errors in the kernel. Docker's default profile refuses the same; unlike it, this is a list of
refusals, so that a call which is newer than the list works.

Sources: seccomp(2), https://docs.docker.com/engine/security/seccomp/ and, for set-user-ID files,
`RestrictSUIDSGID=` in systemd.exec(5).
"""

import os

from trainstack.sandbox import syscalls

_PERM, _NO_SUCH_CALL = 1, 38
_ALWAYS: "tuple[()]" = ()

_NAMESPACES = 0x7E020000
"""CLONE_NEW* of `clone`; `unshare` has one more."""
_NEWTIME = 0x80
_CREATES = 0o100 | 0o20000000
"""O_CREAT and O_TMPFILE: without them the mode of `open` has no meaning."""
_SET_ID = 0o6000
"""S_ISUID and S_ISGID. Files below /gcs are this machine's: another user of it could run one as the stack's user."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

_REFUSED = (
    # name, number on x86-64, number on AArch64 (None: it does not exist), conditions, error.
    # A condition is an argument's index, "any" for one of these bits or "is", and the bits or the value.
    # Its flags are in memory, out of a filter's sight; glibc falls back.
    ("clone3", 435, 435, _ALWAYS, _NO_SUCH_CALL),
    ("clone", 56, 220, ((0, "any", _NAMESPACES),), _PERM),
    ("unshare", 272, 97, ((0, "any", _NAMESPACES | _NEWTIME),), _PERM),
    ("setns", 308, 268, _ALWAYS, _PERM),
    ("mount", 165, 40, _ALWAYS, _PERM),
    ("umount2", 166, 39, _ALWAYS, _PERM),
    ("pivot_root", 155, 41, _ALWAYS, _PERM),
    ("open_tree", 428, 428, _ALWAYS, _PERM),
    ("move_mount", 429, 429, _ALWAYS, _PERM),
    ("fsopen", 430, 430, _ALWAYS, _PERM),
    ("fsconfig", 431, 431, _ALWAYS, _PERM),
    ("fsmount", 432, 432, _ALWAYS, _PERM),
    ("fspick", 433, 433, _ALWAYS, _PERM),
    ("mount_setattr", 442, 442, _ALWAYS, _PERM),
    ("open_by_handle_at", 304, 265, _ALWAYS, _PERM),
    ("add_key", 248, 217, _ALWAYS, _PERM),
    ("request_key", 249, 218, _ALWAYS, _PERM),
    ("keyctl", 250, 219, _ALWAYS, _PERM),
    ("bpf", 321, 280, _ALWAYS, _PERM),
    ("perf_event_open", 298, 241, _ALWAYS, _PERM),
    ("userfaultfd", 323, 282, _ALWAYS, _PERM),
    ("io_uring_setup", 425, 425, _ALWAYS, _PERM),
    ("io_uring_enter", 426, 426, _ALWAYS, _PERM),
    ("io_uring_register", 427, 427, _ALWAYS, _PERM),
    ("syslog", 103, 116, _ALWAYS, _PERM),
    ("acct", 163, 89, _ALWAYS, _PERM),
    ("quotactl", 179, 60, _ALWAYS, _PERM),
    ("quotactl_fd", 443, 443, _ALWAYS, _PERM),
    ("init_module", 175, 105, _ALWAYS, _PERM),
    ("finit_module", 313, 273, _ALWAYS, _PERM),
    ("delete_module", 176, 106, _ALWAYS, _PERM),
    ("kexec_load", 246, 104, _ALWAYS, _PERM),
    ("kexec_file_load", 320, 294, _ALWAYS, _PERM),
    ("reboot", 169, 142, _ALWAYS, _PERM),
    ("swapon", 167, 224, _ALWAYS, _PERM),
    ("swapoff", 168, 225, _ALWAYS, _PERM),
    ("ioctl", 16, 29, ((1, "is", _TIOCSTI),), _PERM),
    ("ioctl", 16, 29, ((1, "is", _TIOCLINUX),), _PERM),
    ("chmod", 90, None, ((1, "any", _SET_ID),), _PERM),
    ("fchmod", 91, 52, ((1, "any", _SET_ID),), _PERM),
    ("fchmodat", 268, 53, ((2, "any", _SET_ID),), _PERM),
    ("fchmodat2", 452, 452, ((2, "any", _SET_ID),), _PERM),
    ("creat", 85, None, ((1, "any", _SET_ID),), _PERM),
    ("open", 2, None, ((1, "any", _CREATES), (2, "any", _SET_ID)), _PERM),
    ("openat", 257, 56, ((2, "any", _CREATES), (3, "any", _SET_ID)), _PERM),
    ("openat2", 437, 437, _ALWAYS, _NO_SUCH_CALL),  # as clone3; its callers fall back to openat
    ("mknod", 133, None, ((1, "any", _SET_ID),), _PERM),
    ("mknodat", 259, 33, ((2, "any", _SET_ID),), _PERM),
)

# Fields of struct seccomp_data, instructions of classic BPF, and what a filter may answer (linux/seccomp.h).
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000

_ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""Of these machines: the column of numbers above, the kernel's word for it (linux/audit.h), and the number of seccomp."""
_X32 = 0x40000000
"""From here on the numbers of x86-64 are those of a second set of calls."""


def refuse_calls() -> None:
    """From here on, in this process and all that it starts. Where the calls' numbers are not known it does nothing.

    Call it after `syscalls.drop_privileges`. Raises `OSError`.
    """
    machine = os.uname().machine
    if machine in _ARCHITECTURES:
        column, architecture, seccomp = _ARCHITECTURES[machine]
        syscalls.install_filter(seccomp, _filter(column, architecture))


def _filter(column: int, architecture: int) -> bytes:
    """An array of `struct sock_filter`."""
    program = [
        _instruction(_LOAD, _ARCHITECTURE),
        _instruction(_IF_EQUAL, architecture, yes=1),
        _instruction(_RETURN, _KILL),  # 32-bit calls have other numbers
        _instruction(_LOAD, _NUMBER),
        _instruction(_IF_AT_LEAST, _X32, no=1),
        _instruction(_RETURN, _ERROR | _NO_SUCH_CALL),
    ]
    for _name, *numbers, conditions, error in _REFUSED:
        if (number := numbers[column]) is not None:
            program += _refusal(number, conditions, error)
    return b"".join([*program, _instruction(_RETURN, _ALLOW)])


def _refusal(number: int, conditions: "tuple[tuple[int, str, int], ...]", error: int) -> "list[bytes]":
    """Instructions that start and, unless they refuse, end with the call's number loaded."""
    checks: list[bytes] = []
    # Every check that fails skips what follows, up to the load of the number at the end.
    left = 2 * len(conditions) + 1
    for index, kind, value in conditions:
        left -= 2
        checks.append(_instruction(_LOAD, _ARGUMENTS + 8 * index))  # the lower half, on these machines
        checks.append(_instruction(_IF_EQUAL if kind == "is" else _IF_ANY_BIT, value, no=left))
    checks.append(_instruction(_RETURN, _ERROR | error))
    if conditions:
        checks.append(_instruction(_LOAD, _NUMBER))
    return [_instruction(_IF_EQUAL, number, no=len(checks)), *checks]


def _instruction(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """`yes` and `no` say how many instructions a comparison skips."""
    return code.to_bytes(2, "little") + bytes((yes, no)) + value.to_bytes(4, "little")
