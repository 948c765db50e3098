"""The root of a script's project, which is packed and on the import path, and the files of modules in it."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmaster.client.errors import ClientRefused
from trainmaster.orchestrator.core.requests.script import OWN
from trainmaster.resources import ROOT

MARKS = ("pyproject.toml", "setup.py", ".git")
_LAUNCHER_FILES = ("__init__.py", "faults.py", "launch/*.py", "replicas/*.py", "settings/*.py")
"""Of the trainer: what docs/how-to/frameworks.md copies into an image of another framework."""


class ProjectRefused(ClientRefused):
    """A project that cannot be sent. `part` is the script's key that asks for what is not there."""

    def __init__(self, message: str, part: str = "root") -> None:
        super().__init__(message)
        self.part = part


def find_root(folder: Path) -> tuple[Path, str] | None:
    """The nearest folder from this one upwards with one of MARKS, and which; None without one on this file system.

    It is never the home directory or above it.
    """
    home = Path.home()
    for here in (folder, *folder.parents):
        if here in (home, here.parent):
            return None
        if mark := next((mark for mark in MARKS if (here / mark).exists()), ""):
            return here, mark
        if os.path.ismount(here):
            return None
    return None


def import_folders(root: Path) -> list[Path]:
    """Where replicas look for modules: RUNNER puts these folders on the import path."""
    source = root / "src"
    return [root, source] if source.is_dir() and not (source / "__init__.py").exists() else [root]


def file_of_module(name: str, folders: Sequence[Path]) -> Path | None:
    """The file of a module or of a package, by its dotted name."""
    paths = (folder.joinpath(*name.split(".")) for folder in folders)
    files = (file for path in paths for file in (path / "__init__.py", path.with_name(f"{path.name}.py")))
    return next((file for file in files if file.is_file()), None)


def file_of_program(module: str, root: Path) -> Path:
    """The file that `python -m module` runs.

    Raises:
        ClientRefused: the root has no such module.
    """
    folders = import_folders(root)
    file = file_of_module(module, folders)
    if file is not None and file.name == "__init__.py":
        file = file_of_module(f"{module}.__main__", folders)
    if file is None:
        where = " or its src" if len(folders) > 1 else ""
        raise ClientRefused(
            f"{str(root)!r}{where} has no module {module!r} that `python -m {module}` could run."
        )
    return file


def launcher_files() -> Mapping[str, bytes]:
    """The files of `trainer.launch`, by their paths in an archive."""
    trainer = ROOT / "trainer"
    paths = sorted(path for pattern in _LAUNCHER_FILES for path in trainer.glob(pattern))
    return {f"{OWN}/trainer/{path.relative_to(trainer).as_posix()}": path.read_bytes() for path in paths}
