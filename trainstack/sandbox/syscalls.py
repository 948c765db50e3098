"""The system calls of a confinement that Python does not offer.

Sources: namespaces(7), mount_setattr(2), capabilities(7), prctl(2), seccomp(2), netdevice(7).
"""

import ctypes
import os

NEWNS, NEWIPC, NEWUSER = 0x00020000, 0x08000000, 0x10000000
NEWPID, NEWNET = 0x20000000, 0x40000000
"""Flags of `unshare`: one namespace each."""

RDONLY, REMOUNT, BIND, REC, PRIVATE = 1, 32, 4096, 16384, 1 << 18
NOSUID, NODEV, NOEXEC = 2, 4, 8
"""Flags of `mount`."""
KEPT_FLAGS = NOSUID | NODEV | NOEXEC | 1024 | 2048
"""With noatime and nodiratime: a user namespace may not clear them."""

_DETACH = 2
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000
_PDEATHSIG, _DUMPABLE, _CAPBSET_DROP, _SUBREAPER = 1, 4, 24, 36
_NO_NEW_PRIVS, _AMBIENT, _CLEAR_ALL = 38, 47, 4
_FILTER, _SPEC_ALLOW = 1, 4
_NPROC = 6
_CAPABILITIES_V3 = 0x20080522
# chown dac_override fowner fsetid kill setgid setuid
PROGRAMS_CAPABILITIES = (1 << 0) | (1 << 1) | (1 << 3) | (1 << 4) | (1 << 5) | (1 << 6) | (1 << 7)
"""What a program that is root in its user namespace may do to its files and processes there."""
_LAST_CAPABILITY = "/proc/sys/kernel/cap_last_cap"

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Move this process into new namespaces. Raises `OSError`."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, flag: int) -> None:
    """Move this process into an existing namespace. Raises `OSError`."""
    _check(_libc.setns(descriptor, flag), "setns")


def enter_user_namespace() -> None:
    """A new user namespace in which this user keeps its ids, with all capabilities until the next exec.

    Raises:
        OSError: this machine does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    unshare(NEWUSER)
    write_setting("/proc/self/setgroups", b"deny")
    write_setting("/proc/self/uid_map", b"%d %d 1" % (user, user))
    write_setting("/proc/self/gid_map", b"%d %d 1" % (group, group))


def mount(source: str, target: str, kind: "str | None" = None, flags: int = 0, options: str = "") -> None:
    """Raises `OSError`."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    given = options.encode() if options else None
    _check(_libc.mount(*words, ctypes.c_ulong(flags), given), f"mount {source} on {target}")


def make_read_only(target: str) -> None:
    """A mount and all below it; before Linux 5.12 only itself. Raises `OSError`."""
    attributes = (ctypes.c_uint64 * 4)(RDONLY, 0, 0, 0)
    size = ctypes.c_size_t(ctypes.sizeof(attributes))
    words = (_AT_FDCWD, os.fsencode(target), _AT_RECURSIVE, ctypes.byref(attributes), size)
    if _libc.syscall(ctypes.c_long(_MOUNT_SETATTR), *words) != 0:
        kept = os.statvfs(target).f_flag & KEPT_FLAGS
        mount("none", target, None, BIND | REMOUNT | RDONLY | kept)


def change_root(root: str) -> None:
    """Make `root`, a mount point, the only tree of this mount namespace: nothing leads back. Raises `OSError`."""
    os.chdir(root)
    _check(_libc.pivot_root(b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _DETACH), "umount")
    os.chdir("/")


def drop_privileges(kept: int = 0) -> None:
    """For this process and all that it starts: no capabilities but those of this mask, and none of another user.

    Raises:
        OSError: the kernel refuses.
    """
    _prctl(_NO_NEW_PRIVS, 1)
    with open(_LAST_CAPABILITY, "rb") as file:  # Python may be out of sight by now: no codec can be imported
        last = int(file.read())
    for number in range(last + 1):
        if not kept >> number & 1:
            _prctl(_CAPBSET_DROP, number)
    _prctl(_AMBIENT, _CLEAR_ALL)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    sets = (ctypes.c_uint32 * 6)()
    _check(_libc.capget(ctypes.byref(header), ctypes.byref(sets)), "capget")
    effective, permitted = sets[0] & kept, sets[1] & kept
    reduced = (ctypes.c_uint32 * 6)(effective, permitted, 0, 0, 0, 0)
    _check(_libc.capset(ctypes.byref(header), ctypes.byref(reduced)), "capset")


def close_to_others() -> None:
    """Keep this process's memory and files from others, also in /proc, unless they may trace it as root may.

    Starting a program undoes it.
    """
    _prctl(_DUMPABLE, 0)


def limit_processes(most: int) -> None:
    """Lower the limit on the processes of this user, which counts in its user namespace. Raises `OSError`."""
    limits = (ctypes.c_uint64 * 2)()
    _check(_libc.prlimit(0, _NPROC, None, ctypes.byref(limits)), "prlimit")
    lower = (ctypes.c_uint64 * 2)(*(min(limit, most) for limit in limits))
    _check(_libc.prlimit(0, _NPROC, ctypes.byref(lower), None), "prlimit")


def install_filter(seccomp: int, program: bytes) -> None:
    """Have the kernel ask this filter, an array of `struct sock_filter`, about every later system call.

    `seccomp` is that call's number. Raises `OSError`.
    """
    instructions = ctypes.create_string_buffer(program, len(program))
    described = (ctypes.c_uint64 * 2)(len(program) // 8, ctypes.addressof(instructions))
    # Without SPEC_ALLOW, kernels before 5.16 slow the program's own instructions down.
    words = (ctypes.c_ulong(_FILTER), ctypes.c_ulong(_SPEC_ALLOW), ctypes.byref(described))
    _check(_libc.syscall(ctypes.c_long(seccomp), *words), "seccomp")


def send_at_parents_end(number: int) -> None:
    """Have the kernel send this signal to this process when the thread that started it ends."""
    _prctl(_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_SUBREAPER, 1)


def _prctl(option: int, argument: int) -> None:
    words = [ctypes.c_ulong(word) for word in (argument, 0, 0, 0)]
    _check(_libc.prctl(option, *words), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def write_setting(path: str, text: bytes) -> None:
    """To a file of the kernel, which must exist, in one call. Raises `OSError`."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text)
    finally:
        os.close(descriptor)
