"""A check that this machine allows confinements, with the repair where it does not."""

import functools
import os
import subprocess
import sys
from pathlib import Path

LAUNCHER = Path(__file__).with_name("__main__.py")

_SETTINGS = Path("/proc/sys")
_REPAIRS = (
    (
        "kernel/apparmor_restrict_unprivileged_userns", "1",
        "AppArmor restricts user namespaces, as on Ubuntu since 24.04. To allow them until the next boot: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "kernel/unprivileged_userns_clone", "0",
        "user namespaces are switched off. To allow them until the next boot: sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    (
        "user/max_user_namespaces", "0",
        "user namespaces are switched off. To allow them until the next boot: sudo sysctl -w user.max_user_namespaces=15000",
    ),
)  # fmt: skip
"""A setting, the value that prevents confinements, and the repair.

Sources: https://ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces, namespaces(7).
"""
_IN_A_CONTAINER = (
    "if this is a container, start it with --privileged, because others may not create namespaces"
)


@functools.cache
def obstacle() -> str:
    """Why programs cannot be confined here, with the repair where it is known; empty if they can.

    Takes about 30 ms, and is found out once: what the machine allows is not expected to change while a process runs.
    """
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(LAUNCHER), "--probe"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return ""
    return f"{done.stderr.strip()}; {repair(_SETTINGS, is_root=os.getuid() == 0)}"


def repair(settings: Path, *, is_root: bool) -> str:
    """What to change, by the kernel's settings below this directory, which do not restrict root."""
    for name, preventing, text in _REPAIRS:
        path = settings / name
        if not is_root and path.is_file() and path.read_text(encoding="ascii").strip() == preventing:
            return text
    return _IN_A_CONTAINER
