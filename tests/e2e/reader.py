"""Follows a tutorial as a newcomer does: runs its commands, and compares what they print with what the page shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

from .project import ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The first use of an image builds its environment, of hundreds of megabytes.
DEADLINE_S = 400


def sections(page: Path) -> dict[str, list[tuple[str, str]]]:
    """The language and text of every code block, by the section's heading; a block of output has no language."""
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return {title: BLOCK.findall(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def with_commands(page: Path) -> list[str]:
    """The titles of the sections that have commands."""
    return [title for title, blocks in sections(page).items() if any(kind == "sh" for kind, _ in blocks)]


class Reader:
    """Runs the page's commands in one folder, with separate settings.

    Attributes:
        folder: where the commands run; at first it has the checkout's `examples` and nothing else.
        printed: the output of each command so far, standard output and error together.
    """

    def __init__(self, page: Path, folder: Path) -> None:
        self.folder = self._home = folder
        self.printed: list[str] = []
        self._sections = sections(page)
        path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "TRAINMASTER_CONFIG": str(folder / "settings")}
        (folder / "examples").symlink_to(ROOT / "examples")
        command = folder / "bin" / "trainmaster"  # of this checkout, wherever the environment was set up for
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m trainmaster "$@"\n')
        command.chmod(0o755)

    def follow(self, title: str, *, fails: str = "") -> str:
        """Run the commands of a section, and return what they printed, which holds every line that the page shows.

        Args:
            title: the section's heading.
            fails: a part of the command that is expected to fail.
        """
        blocks = self._sections[title]
        printed = "".join(
            self.run(line, fails=bool(fails) and fails in line)
            for kind, text in blocks
            if kind == "sh"
            for line in text.replace("\\\n", " ").splitlines()
        )
        self.printed.append(printed)
        found = {without_numbers(line) for line in printed.splitlines()}
        shown = [line for kind, text in blocks if not kind for line in text.splitlines()]
        assert [line for line in shown if without_numbers(line) not in found] == [], printed
        return printed

    def run(self, command: str, *, fails: bool = False) -> str:
        """The output of one command line, in which `~` is the folder at first."""
        command = command.replace("~/", f"{self._home}/")
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self._environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=DEADLINE_S,
        )  # fmt: skip
        assert (done.returncode != 0) == fails, (command, done.stdout, self._log())
        if entered := re.search(r"\bcd (\S+)$", command):
            self.folder /= entered[1]  # each command has its own shell
        return done.stdout

    def stop(self) -> None:
        """Stop the stack, if it runs."""
        self.run("trainmaster down")

    def _log(self) -> str:
        logs = sorted(self.folder.glob("**/.trainmaster/stack.log"))
        return "".join(log.read_text(errors="replace")[-3000:] for log in logs)


def without_numbers(line: str) -> str:
    """The line without its numbers, and with single blanks."""
    return re.sub(r"\s+", " ", re.sub(r"\d[\w.:-]*", "#", line.strip()))
