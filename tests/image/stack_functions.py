"""Deploys new source to the functions of a running stack, one function at a time."""

import io
import threading
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.e2e.project import Project


@dataclass(frozen=True, kw_only=True)
class StackFunctions:
    """The functions of a stack that was started with `--functions LINK`, a symbolic link to their source.

    A deployment turns the link to the new source and restarts its function. The other functions keep the source that
    they were started from.
    """

    project: Project
    link: Path
    _one_at_a_time: threading.Lock = field(default_factory=threading.Lock)

    def deploy(self, function: str, archive: bytes) -> None:
        """As `switch`, to the source in the ZIP archive, which is the function's first deployment."""
        source = self.link.with_name(f"source-of-{function}")
        with zipfile.ZipFile(io.BytesIO(archive)) as zipped:
            zipped.extractall(source)
        self.switch(function, source)

    def switch(self, function: str, source: Path) -> None:
        """Return once a process of the function runs on the source; the one before ends what it has begun."""
        with self._one_at_a_time:
            point(self.link, source)
            self.project.function_processes(function)[0].terminate()
            self.project.eventually(lambda: self.source_of(function) == source, f"{function} is deployed")

    def source_of(self, function: str) -> Path | None:
        """Where the function's process was started; None between two processes."""
        try:
            return next((Path(each.cwd()) for each in self.project.function_processes(function)), None)
        except psutil.NoSuchProcess:
            return None


def point(link: Path, target: Path) -> None:
    """Let the link lead to the target, in one step."""
    new = link.with_suffix(".new")
    new.symlink_to(target)
    new.replace(link)


def read_files(directory: Path) -> dict[str, bytes]:
    """The content of every file by its path, but for what Python compiled."""
    found = (path for path in directory.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}
