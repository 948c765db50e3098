"""How often the kernel has ended a process for want of memory, as far as this process may know it.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html (memory.events), and `oom_kill` in /proc/vmstat,
which counts the whole machine's.
"""

from pathlib import Path

_CGROUPS, _OWN, _MACHINE = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup"), Path("/proc/vmstat")


def oom_kills() -> int | None:
    """The count of our own control group, else the machine's; None where neither can be read.

    A count that has not risen since a replica was started rules out that the kernel ended it.
    One that has risen makes it likely: another process may have been the one.
    """
    for path in (*_own_events(), _MACHINE):
        if (found := _counted(path)) is not None:
            return found
    return None


def _own_events() -> list[Path]:
    try:
        groups = _OWN.read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    # `0::/path` is the one hierarchy of version 2; lines of version 1 name controllers.
    return [_CGROUPS / line[4:].lstrip("/") / "memory.events" for line in groups if line.startswith("0::/")]


def _counted(path: Path) -> int | None:
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith("oom_kill ")), None)
