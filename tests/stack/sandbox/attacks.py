"""The attempts of a hostile program of a job, each with its outcome: run it as a program, with no import of ours.

Prints a JSON object: from the name of an attempt to the names of the errors that it met, or to what it got.
"""

import contextlib
import ctypes
import errno
import json
import mmap
import os
import platform
import signal
import socket
import stat
import sys
from collections.abc import Callable
from functools import partial

_INIT = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
_X86 = platform.machine() == "x86_64"
_NAMESPACES = {"user": 0x10000000, "mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000}
_NAMESPACES |= {"pid": 0x20000000, "net": 0x40000000}
_DEVICES = {"mem": (1, 1), "kmem": (1, 2), "port": (1, 4), "kmsg": (1, 11), "sda": (8, 0), "vda": (254, 0)}
_DEVICES |= {"fuse": (10, 229), "kvm": (10, 232), "loop-control": (10, 237), "net/tun": (10, 200)}
_SEIZE = 0x4206


def attempted(work: Callable[[], object]) -> str:
    """What it returned, or the name of its error."""
    try:
        return str(work())
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def all_attempted(works: dict[str, Callable[[], object]]) -> list[str]:
    """The different outcomes; those that returned something with their names."""
    outcomes = {name: attempted(work) for name, work in works.items()}
    return sorted(
        {said if said in errno.errorcode.values() else f"{name}: {said}" for name, said in outcomes.items()}
    )


def called(name: str, *words: int | bytes | None) -> int:
    """A function of the C library."""
    return _checked(
        getattr(_LIBC, name)(*(ctypes.c_ulong(each) if isinstance(each, int) else each for each in words))
    )


def asked(x86: int, other: int, *words: int | bytes | None) -> int:
    """A system call by its number on x86-64 or on AArch64."""
    return called("syscall", x86 if _X86 else other, *words, *[0] * (6 - len(words)))


def cloned(flag: int) -> str:
    if asked(56, 220, flag | signal.SIGCHLD) == 0:
        os._exit(0)
    os.wait()
    return "cloned"


def _checked(result: int) -> int:
    if result == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def opened(path: str, flags: int = os.O_RDONLY) -> str:
    descriptor = os.open(path, flags)
    try:
        if flags == os.O_RDONLY:  # some files of /proc are guarded when they are read
            os.read(descriptor, 1)
    finally:
        os.close(descriptor)
    return "opened"


def inits_files() -> list[str]:
    files = ("exe", "mem", "environ", "maps", "smaps", "auxv", "io", "stack", "syscall", "pagemap", "fd/0")
    works: dict[str, Callable[[], object]] = {name: partial(opened, f"/proc/1/{name}") for name in files}
    works |= {f"{name} to write": partial(opened, f"/proc/1/{name}", os.O_RDWR) for name in ("exe", "mem")}
    works |= {
        f"handle of {name}": partial(opened, f"/proc/1/{name}", os.O_PATH) for name in ("exe", "root", "cwd")
    }
    for name in ("exe", "root", "cwd", "fd/1", "ns/user", "ns/mnt"):
        works[f"link {name}"] = partial(os.readlink, f"/proc/1/{name}")
    for name in ("root", "cwd", "map_files"):
        works[f"list {name}"] = partial(os.listdir, f"/proc/1/{name}")
    return [said for said in all_attempted(works) if said not in ("EACCES", "EPERM")]


def inits_memory() -> list[str]:
    vector = (ctypes.c_uint64 * 2)(id(_LIBC), 8)
    moved = (ctypes.addressof(vector), 1, ctypes.addressof(vector), 1, 0)
    return all_attempted(
        {
            "seize": lambda: called("ptrace", _SEIZE, _INIT, 0, 0),
            "read": lambda: called("process_vm_readv", _INIT, *moved),
            "write": lambda: called("process_vm_writev", _INIT, *moved),
            "take a file": lambda: asked(438, 438, os.pidfd_open(_INIT), 0, 0),
            "compare": lambda: asked(312, 272, os.getpid(), _INIT, 2, 0, 0),
        }
    )


def inits_life() -> str:
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGTRAP):
        os.kill(_INIT, number)
    with open("/proc/1/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0]


def others() -> list[str]:
    """Processes outside, by their ids there."""
    pids = [int(each) for each in sys.argv[2].split(",")]
    works: dict[str, Callable[[], object]] = {f"kill {pid}": partial(os.kill, pid, 0) for pid in pids}
    return all_attempted(works) + [each for each in os.listdir("/proc") if each.isdigit() and int(each) > 50]


def keyrings() -> list[str]:
    return all_attempted(
        {
            "the user's": lambda: asked(250, 219, 0, -4 & 0xFFFFFFFF, 1),
            "the session's": lambda: asked(250, 219, 0, -3 & 0xFFFFFFFF, 1),
            "add": lambda: asked(248, 217, b"user", b"k", b"v", 1, -4 & 0xFFFFFFFF),
            "request": lambda: asked(249, 218, b"user", b"k", None, 0),
        }
    )


def abstract_socket() -> str:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("\0" + sys.argv[1])
        return "connected"


def new_namespaces() -> list[str]:
    works: dict[str, Callable[[], object]] = {}
    for name, flag in _NAMESPACES.items():
        works[f"unshare {name}"] = partial(called, "unshare", flag)
        works[f"clone {name}"] = partial(cloned, flag)
    works["join"] = lambda: called("setns", os.open("/proc/self/ns/user", os.O_RDONLY), 0)
    return all_attempted(works)


def newer_calls() -> list[str]:
    """Those whose flags are in memory, out of a filter's sight."""
    return all_attempted(
        {"clone3": lambda: asked(435, 435, None, 0), "openat2": lambda: asked(437, 437, -100, b"/", None, 0)}
    )


def mounts() -> list[str]:
    remount = 32 | 4096
    return all_attempted(
        {
            "writable": lambda: called("mount", b"none", b"/usr", None, remount, None),
            "uncovered": lambda: called("umount2", b"/proc/sys", 2),
            "control groups": lambda: called("mount", b"none", b"/tmp", b"cgroup2", 0, None),
            "processes": lambda: called("mount", b"none", b"/tmp", b"proc", 0, None),
            "formats": lambda: called("mount", b"none", b"/tmp", b"binfmt_misc", 0, None),
            "root": lambda: os.chroot("/usr"),
            "tree": lambda: asked(428, 428, -100, b"/", 1),
            "file system": lambda: asked(430, 430, b"proc", 0),
            "handle": lambda: asked(304, 265, 0, None, 0),
        }
    )


def kernel_interfaces() -> list[str]:
    calls = {
        "bpf": (321, 280),
        "perf_event_open": (298, 241),
        "userfaultfd": (323, 282),
        "io_uring_setup": (425, 425),
    }
    calls |= {"syslog": (103, 116), "kexec_load": (246, 104), "init_module": (175, 105), "acct": (163, 89)}
    calls |= {"quotactl": (179, 60), "swapoff": (168, 225), "reboot": (169, 142)}
    return all_attempted({name: partial(asked, *numbers, 0, 0) for name, numbers in calls.items()})


def calls_with_other_numbers() -> str:
    """Unsharing by a 32-bit call: `mov eax, 310; mov ebx, CLONE_NEWUSER; int 0x80; ret`."""
    if not _X86:
        return "SIGSYS"
    pid = os.fork()
    if pid == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x36\x01\x00\x00\xbb\x00\x00\x00\x10\xcd\x80\xc3")
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return signal.Signals(-status).name if status < 0 else f"{status}"


def calls_of_x32() -> str:
    return attempted(lambda: asked(0x40000000 | 272, 97, _NAMESPACES["user"])) if _X86 else "ENOSYS"


def devices() -> list[str]:
    found = [name for name in _DEVICES if os.path.exists(f"/dev/{name}")]
    works: dict[str, Callable[[], object]] = {}
    for name, (major, minor) in _DEVICES.items():
        for kind in (stat.S_IFCHR, stat.S_IFBLK):
            device = os.makedev(major, minor)
            works[f"{name} {kind}"] = partial(os.mknod, "device", kind | 0o600, device)
    return found + all_attempted(works)


def device_files() -> list[str]:
    """Of the machine: their modes, owners and times; and new files among the machine's."""
    works: dict[str, Callable[[], object]] = {}
    for name in ("null", "zero", "urandom"):
        works[f"mode of {name}"] = partial(os.chmod, f"/dev/{name}", 0o666)
        works[f"owner of {name}"] = partial(os.chown, f"/dev/{name}", 0, 0)
        works[f"times of {name}"] = partial(os.utime, f"/dev/{name}")
    for folder in ("/usr", "/etc"):
        works[f"a new file in {folder}"] = partial(opened, f"{folder}/x", os.O_CREAT | os.O_WRONLY)
    return all_attempted(works)


def settings() -> list[str]:
    """Every file below /proc/sys and /sys/fs/cgroup, and some others, opened to be written."""
    paths = [
        "/sys/kernel/uevent_helper",
        "/sys/power/state",
        "/proc/sysrq-trigger",
        "/proc/mtrr",
        "/proc/kcore",
    ]
    paths = [path for path in paths if os.path.exists(path)]
    for top in ("/proc/sys", "/sys/fs/cgroup", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/driver"):
        paths += [os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names]
    works: dict[str, Callable[[], object]] = {path: partial(opened, path, os.O_WRONLY) for path in paths}
    works["a control group"] = lambda: os.mkdir("/sys/fs/cgroup/made")
    return [said for said in all_attempted(works) if said not in ("EROFS", "EACCES", "EPERM", "ENOENT")]


def roots_information() -> list[str]:
    """What only root may read, and gets."""
    found = []
    for path in (
        "/proc/kcore",
        "/proc/kmsg",
        "/proc/kpageflags",
        "/proc/slabinfo",
        "/proc/vmallocinfo",
        "/proc/timer_list",
    ):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            found += [path] if file.read(1) else []
    for folder in ("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/firmware"):
        with contextlib.suppress(OSError):
            found += [folder] if os.listdir(folder) else []
    return found


def set_user_id() -> list[str]:
    path = "/gcs/bucket/"
    with open(path + "plain", "w", encoding="ascii") as file:
        works: dict[str, Callable[[], object]] = {
            "chmod": lambda: os.chmod(path + "plain", 0o4755),
            "fchmod": lambda: os.fchmod(file.fileno(), 0o2755),
            "fchmodat": lambda: os.chmod("plain", 0o4755, dir_fd=os.open("/gcs/bucket", os.O_RDONLY)),
            "fchmodat2": lambda: asked(452, 452, -100, path.encode() + b"plain", 0o4755, 0),
            "open": lambda: os.close(os.open(path + "opened", os.O_CREAT | os.O_WRONLY, 0o4755)),
            "mknod": lambda: os.mknod(path + "made", stat.S_IFREG | 0o4755),
        }
        found = [each for each in all_attempted(works) if each != "ENOSYS"]  # fchmodat2 is from Linux 6.6
    return found + [name for name in os.listdir(path) if os.stat(path + name).st_mode & 0o6000]


def terminal() -> list[str]:
    import fcntl

    first, second = os.openpty()
    works: dict[str, Callable[[], object]] = {
        "typed": lambda: fcntl.ioctl(second, 0x5412, b"x"),
        "pasted": lambda: fcntl.ioctl(second, 0x541C, b"\x03"),
    }
    outcomes = all_attempted(works)
    os.close(first)
    return outcomes


def privileges() -> dict[str, str]:
    with open("/proc/self/status", encoding="utf-8") as file:
        fields = {name: value.strip() for name, _, value in (line.partition(":") for line in file)}
    more = int(fields["CapBnd"], 16) & ~0b11111011
    return {"NoNewPrivs": fields["NoNewPrivs"], "Seccomp": fields["Seccomp"], "more capabilities": hex(more)}


ATTEMPTS = (
    inits_files,
    inits_memory,
    inits_life,
    others,
    keyrings,
    abstract_socket,
    newer_calls,
    mounts,
    kernel_interfaces,
    calls_with_other_numbers,
    calls_of_x32,
    devices,
    device_files,
    settings,
    roots_information,
    set_user_id,
    terminal,
    privileges,
    new_namespaces,
)

if __name__ == "__main__":
    outcomes: dict[str, object] = {}
    for attempt in ATTEMPTS:
        try:
            outcomes[attempt.__name__] = attempt()
        except OSError as error:
            outcomes[attempt.__name__] = errno.errorcode[error.errno or 0]
    print(json.dumps(outcomes))
