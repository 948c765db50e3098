"""One sentence, with the likely repair, for what the operating system refuses set-up."""

import errno
import os
import pwd
import re
from pathlib import Path

FULL = re.compile(r"No space left on device|Disk quota exceeded|No usable temporary directory")
"""In a text of the operating system, of Python or of pip: there is no room."""

DISK_FULL = (
    "The disk became full while packages were installed. Free some on the disk of the checkout, and on that of the "
    "temporary folder, or set TMPDIR to a folder on another disk in place of the latter. make setup then continues."
)


def sentence_for(error: OSError, environment: Path) -> str:
    """What could not be read or written and why, and the likely repair. `environment`: the .venv of the checkout."""
    if FULL.search(str(error)):
        return DISK_FULL
    place = _refused_path(error, environment)
    return (
        f"Set-up cannot read or write {place}: {error.strerror or error} (errno {error.errno}). "
        f"{_repair_of(error.errno, place, environment)}"
    )


def _refused_path(error: OSError, environment: Path) -> Path:
    """What was refused. When Python removes a folder, its errors may have the name in that folder alone."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else ""
    return Path(name) if Path(name).is_absolute() else environment


def _repair_of(number: int | None, place: Path, environment: Path) -> str:
    if number == errno.EROFS:
        return "Its file system is mounted read-only. Run make setup in a clone on another one."
    if number not in {errno.EACCES, errno.EPERM}:
        return "Run rm -rf .venv, then make setup, which makes it again."
    refused = next(candidate for candidate in (place, *place.parents) if os.access(candidate, os.F_OK))
    owner, user = _name_of(refused.stat().st_uid), _name_of(os.geteuid())
    if owner == user:
        return f"{refused} belongs to you ({user}): give yourself access, chmod u+rwX {refused}, and run make setup again."
    if environment in (refused, *refused.parents) and os.access(environment.parent, os.W_OK):
        return f"{refused} belongs to {owner}, and you are {user}. Run sudo rm -rf .venv, then make setup."
    return f"{refused} belongs to {owner}, and you are {user}. Run make setup as {owner}, or in a clone of your own."


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"user {user}"
