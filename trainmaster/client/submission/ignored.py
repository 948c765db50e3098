"""What of a folder git would not track, by the .gitignore files from the repository's root downwards.

Source: https://git-scm.com/docs/gitignore, read 2026-11.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

GITIGNORE = ".gitignore"
GITIGNORE_MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Ignored:
    """The patterns that hold in one folder, those of the outermost .gitignore first."""

    specs: tuple[tuple[Path, GitIgnoreSpec], ...] = ()

    def within(self, folder: Path) -> "Ignored":
        """What holds in `folder`, which is below the folders so far.

        Raises:
            OSError: its .gitignore cannot be read.
        """
        path = folder / GITIGNORE
        if not path.is_file():
            return self
        with path.open("rb") as file:
            lines = file.read(GITIGNORE_MAX_BYTES).decode("utf-8", "replace").splitlines()
        return Ignored(specs=(*self.specs, (folder, GitIgnoreSpec.from_lines(lines))))

    def holds(self, path: Path, *, is_folder: bool) -> bool:
        """Whether git ignores the path; the innermost file that says anything about it decides."""
        for folder, spec in reversed(self.specs):
            name = f"{path.relative_to(folder).as_posix()}{'/' if is_folder else ''}"
            verdict = spec.check_file(name).include
            if verdict is not None:
                return verdict
        return False


def ignored_above(folder: Path) -> Ignored:
    """What holds in `folder`: its own .gitignore, and those up to the root of its git repository.

    Raises:
        OSError: a .gitignore cannot be read.
    """
    root = _git_root(folder)
    found = Ignored()
    for each in _downwards(root, folder):
        found = found.within(each)
    return found


def _git_root(folder: Path) -> Path:
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def _downwards(root: Path, folder: Path) -> Sequence[Path]:
    above = [folder, *folder.parents]
    return above[: above.index(root) + 1][::-1]
