"""Folders with short paths in the system's temporary directory, because a socket's path has at most 107 characters."""

import hashlib
import shutil
import tempfile
from pathlib import Path


def empty_folder(prefix: str, state: Path) -> Path:
    """An empty folder, always the same for one state folder."""
    digest = hashlib.sha256(str(state.resolve()).encode()).hexdigest()[:10]
    folder = Path(tempfile.gettempdir()) / f"{prefix}-{digest}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder
