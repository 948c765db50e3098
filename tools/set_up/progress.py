"""The progress of an installation by pip, read from what pip prints and from the packages in their folder."""

import re
import sys
import time
from pathlib import Path

QUIET_S = 10.0
"""Seconds at least between two lines where a line cannot be replaced: in a log file, or in continuous integration."""

_TAKEN = re.compile(
    r"^(?:Collecting|Processing|Requirement already satisfied:) (?P<what>[^\s=]+)", re.MULTILINE
)
_INSTALLING = re.compile(r"^Installing collected packages: (?P<names>.+)", re.MULTILINE)
_LEFT_OUT = re.compile(r"^Ignoring ", re.MULTILINE)  # packages of other platforms


class InstallationProgress:
    """One line that is replaced on a terminal. Elsewhere it is printed when it has changed, once in `QUIET_S` at most."""

    def __init__(self, packages: Path, *, total: int) -> None:
        """`packages`: the folder that packages are installed in. `total`: how many are downloaded before that."""
        self._packages, self._total = packages, total
        self._started, self._printed = time.time(), time.monotonic()
        self._line = ""

    def show(self, output: str, *, last: bool = False) -> None:
        """Say how far pip is that has printed `output`."""
        line = self._line_of(output)
        if sys.stdout.isatty():
            print(f"\r\x1b[K{line}", end="\n" if last else "", flush=True)
        elif line != self._line and (last or time.monotonic() - self._printed >= QUIET_S):
            print(line, flush=True)
            self._printed, self._line = time.monotonic(), line

    def _line_of(self, output: str) -> str:
        if match := _INSTALLING.search(output):
            installed = [
                folder
                for folder in self._packages.glob("*.dist-info")
                if folder.stat().st_mtime >= self._started
            ]
            return f"  installed {len(installed)} of {match['names'].count(',') + 1}"
        taken = [match["what"].rpartition("/")[2] for match in _TAKEN.finditer(output)]
        total = self._total - len(_LEFT_OUT.findall(output))
        return f"  downloaded {max(0, len(taken) - 1)} of {total}" + (f", now {taken[-1]}" if taken else "")
