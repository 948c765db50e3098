"""The paths that git would not track, by the .gitignore files from the repository's root downwards.

Source: https://git-scm.com/docs/gitignore, read 2026-11.

pathspec is not used: it tries one Python expression for each line and file, so that a hostile .gitignore
takes minutes, and its other backend, RE2's Set, reports no match where it runs out of memory. git itself need
not be installed.
"""

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.gitignore.lines import MAX_BYTES, Gitignore, GitignoreError

GITIGNORE = ".gitignore"
IGNORING_MAX_S = 10.0
"""Processor time for all files of a folder. With usual patterns, 100,000 files take one second."""


@dataclass
class Allowance:
    """The processor time that is left to match patterns."""

    left_s: float = IGNORING_MAX_S


@dataclass(frozen=True, kw_only=True)
class IgnoredPaths:
    """The patterns that hold in one folder, those of the outermost .gitignore first."""

    files: tuple[tuple[Path, Gitignore], ...] = ()
    allowance: Allowance = field(default_factory=Allowance)

    def within(self, folder: Path) -> "IgnoredPaths":
        """What holds in `folder`, which is below the folders so far.

        Raises:
            OSError: its .gitignore cannot be read.
            ClientRefused: its .gitignore is too large, or has too many wildcards.
        """
        path = folder / GITIGNORE
        if not path.is_file():
            return self
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        try:
            read = Gitignore(content)
        except GitignoreError as fault:
            raise ClientRefused(
                f"{str(path)!r} {fault}. Name folders in it in place of single files."
            ) from fault
        return IgnoredPaths(files=(*self.files, (folder, read)), allowance=self.allowance)

    def holds(self, path: Path, *, is_folder: bool) -> bool:
        """Whether git ignores the path, in a folder that it does not; the innermost file that says anything decides.

        Raises:
            ClientRefused: the patterns have taken longer than the allowance.
        """
        began = time.thread_time()
        verdicts = (
            read.verdict(os.fsencode(path.relative_to(folder)), is_folder=is_folder)
            for folder, read in reversed(self.files)
        )
        found = next((verdict for verdict in verdicts if verdict is not None), False)
        self.allowance.left_s -= time.thread_time() - began
        if self.allowance.left_s < 0:
            where = ", ".join(repr(str(folder / GITIGNORE)) for folder, _ in self.files)
            raise ClientRefused(
                f"The patterns of {where} take more than {IGNORING_MAX_S:g} s to match. Use fewer wildcards in them, or move "
                "the script to a separate folder."
            )
        return found


def ignored_above(folder: Path) -> IgnoredPaths:
    """What holds in `folder`: its own .gitignore, and those up to the root of its git repository.

    Raises:
        OSError: a .gitignore cannot be read.
        ClientRefused: a .gitignore is too large, or has too many wildcards.
    """
    above = [folder, *folder.parents]
    root = next((number for number, each in enumerate(above) if (each / ".git").exists()), 0)
    found = IgnoredPaths()
    for parent in reversed(above[: root + 1]):
        found = found.within(parent)
    return found
