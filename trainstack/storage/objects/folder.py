"""The plain files of one bucket, opened component by component, never through a symbolic link."""

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainstack.storage.objects.errors import too_large
from trainstack.storage.objects.records import Fingerprint

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
ENTRIES_MAX = 500_000
"""Of one directory: the largest data sets with one folder for all files have about 200,000."""
_QUIET_S = 1.0  # without leases, a file unmodified for this long counts as closed


@dataclass(frozen=True, kw_only=True)
class Listing:
    """One directory: its inode, when an entry was last added or removed, and its files and subdirectories by bare name."""

    identity: tuple[int, int]
    files: dict[str, Fingerprint]
    subfolders: tuple[str, ...]


class Folder:
    """One bucket's directory.

    Object names must be plain (see `names.is_plain`); folders end in a slash or are empty.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._prefix = f"{root}/"

    def fingerprint(self, name: str) -> Fingerprint | None:
        """The file's current fingerprint; None if it is not a regular file.

        One system call. It may follow a linked folder, so use it only for comparisons.
        """
        try:
            status = os.lstat(self._prefix + name)
        except (OSError, ValueError):
            return None
        return fingerprint_of(status) if stat.S_ISREG(status.st_mode) else None

    def open(self, name: str) -> int | None:
        """A descriptor for reading; None if there is no regular file inside this folder."""
        try:
            with self._parent(name, create=False) as (parent, leaf):
                if not stat.S_ISREG(os.lstat(leaf, dir_fd=parent).st_mode):
                    return None
                return os.open(leaf, _FILE, dir_fd=parent)
        except OSError:
            return None

    def has_room_for(self, name: str) -> bool:
        """Whether a file can have this name, because it is not a folder's; creates the parent folders."""
        with contextlib.suppress(OSError), self._parent(name, create=True) as (parent, leaf):
            with contextlib.suppress(FileNotFoundError):
                return not stat.S_ISDIR(os.lstat(leaf, dir_fd=parent).st_mode)
            return True
        return False

    def place(self, staged: Path, name: str) -> None:
        """Move a staged file to its name atomically, replacing an existing one. Raises `OSError`."""
        with self._parent(name, create=True) as (parent, leaf):
            os.rename(staged, leaf, dst_dir_fd=parent)

    def link(self, name: str, to: Path) -> None:
        """Give the file a second name outside of this folder, under which it stays when it is replaced. Raises `OSError`."""
        to.unlink(missing_ok=True)
        with self._parent(name, create=False) as (parent, leaf):
            try:
                os.link(leaf, to, src_dir_fd=parent, follow_symlinks=False)
            except PermissionError:  # a foreign owner's, where fs.protected_hardlinks is set
                shutil.copyfile(f"/proc/self/fd/{parent}/{leaf}", to)

    def take(self, name: str, to: Path) -> None:
        """Move the file out of this folder. Raises `OSError`."""
        with self._parent(name, create=False) as (parent, leaf):
            os.rename(leaf, to, src_dir_fd=parent)

    def remove(self, name: str) -> None:
        """Remove the file, if it exists."""
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            self._parent(name, create=False) as (parent, leaf),
        ):
            os.unlink(leaf, dir_fd=parent)

    def identity(self, folder: str) -> tuple[int, int]:
        """The directory's modification time (ns) and inode; zeros if it does not exist. One system call."""
        try:
            status = os.lstat(self._prefix + folder.rstrip("/"))
        except (OSError, ValueError):
            return (0, 0)
        return (status.st_mtime_ns, status.st_ino)

    def list(self, folder: str, *, entries_max: int = ENTRIES_MAX) -> Listing | None:
        """The directory's content; None if there is no such directory inside this folder.

        Raises:
            RefusedError: it has more than `entries_max` entries.
        """
        try:
            with self._parent(folder + ".", create=False) as (descriptor, _):
                return _listing(descriptor, entries_max)
        except OSError:
            return None

    @contextlib.contextmanager
    def _parent(self, name: str, *, create: bool) -> Iterator[tuple[int, str]]:
        *folders, leaf = name.split("/")
        if create and not self.root.is_dir():
            self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root, _DIRECTORY)
        try:
            for part in folders:
                inner = _open_folder(part, descriptor, create=create)
                os.close(descriptor)
                descriptor = inner
            yield descriptor, leaf
        finally:
            os.close(descriptor)


def _listing(directory: int, entries_max: int) -> Listing:
    status = os.fstat(directory)
    files: dict[str, Fingerprint] = {}
    subfolders: list[str] = []
    with os.scandir(directory) as entries:
        for number, entry in enumerate(entries):
            if number >= entries_max:
                raise too_large(
                    f"A folder has more than {entries_max:,} entries. Divide it into several folders."
                )
            if entry.is_dir(follow_symlinks=False):
                subfolders.append(entry.name)
            elif entry.is_file(follow_symlinks=False):
                with contextlib.suppress(FileNotFoundError):
                    files[entry.name] = fingerprint_of(entry.stat(follow_symlinks=False))
    return Listing(identity=(status.st_mtime_ns, status.st_ino), files=files, subfolders=tuple(subfolders))


def _open_folder(part: str, parent: int, *, create: bool) -> int:
    try:
        return os.open(part, _DIRECTORY, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # made by another thread or program just now
        os.mkdir(part, dir_fd=parent)
    return os.open(part, _DIRECTORY, dir_fd=parent)


def fingerprint_of(status: os.stat_result) -> Fingerprint:
    return Fingerprint(size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)


def is_closed(descriptor: int) -> bool:
    """Whether no process has this file, which is open here for reading, open for writing.

    Linux grants a read lease only on such files, across all processes of the machine and all mounts
    (fcntl(2), F_SETLEASE). If leases are refused (foreign owner, network file systems, other kernels), a file
    that was not modified for a second counts as closed.
    """
    try:
        # If a writer opens the file in between, the kernel sends a signal: SIGURG is ignored by default,
        # SIGIO would kill.
        fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return False
    except (OSError, AttributeError):
        return time.time() - os.fstat(descriptor).st_mtime > _QUIET_S
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return True
