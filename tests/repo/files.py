"""The files of the project: in a checkout, in a release archive, and in what `gcloud builds submit` uploads.

The last two have neither .git nor .gitignore, so git is not asked for them.
"""

import fnmatch
import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (
    ".venv",
    "build",
    ".trainmaster",
    "__pycache__",
    "*.pyc",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    ".hypothesis",
    ".import_linter_cache",
    "*.egg-info",
    ".terraform",
)
"""Names that commands and tests make, in any folder: those of .gitignore, which a test compares."""
_GIT = ".git"


def project_files(*under: str, root: Path = ROOT) -> Iterator[str]:
    """Each file below some files or folders, or below `root`, as a path from there, in the order of the paths.

    Links to folders are not followed.
    """
    for start in sorted(under or [""]):
        at = root / start
        if at.is_dir():
            yield from sorted(_below(at, root))
        elif at.is_file():
            yield start


def _below(top: Path, root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if _is_kept(name)]
        yield from ((Path(folder) / name).relative_to(root).as_posix() for name in files if _is_kept(name))


def _is_kept(name: str) -> bool:
    return name != _GIT and not any(fnmatch.fnmatchcase(name, pattern) for pattern in LEFT_OUT)
