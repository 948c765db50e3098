"""Follows a tutorial as a newcomer does: runs its commands, and compares what they print with what the page shows."""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from .project import ENDED, ROOT, START_DEADLINE_S, eventually, stop

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The first use of an image builds its environment, of hundreds of megabytes.
DEADLINE_S = 400


def sections(page: Path) -> dict[str, list[tuple[str, str]]]:
    """The language and text of every code block, by the section's heading."""
    parts = re.split(r"^## (.+)\n", page.read_text(), flags=re.MULTILINE)
    return {title: BLOCK.findall(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


class Reader:
    """Runs the page's commands in a temporary folder, in its first shell and its second.

    Attributes:
        sections: of the page, by heading.
        folder: has the checkout's `examples`, and gets `.trainmaster`.
    """

    def __init__(self, page: Path, folder: Path) -> None:
        self.sections = sections(page)
        self.folder = folder
        self._variables: list[str] = []
        path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path}
        (folder / "examples").symlink_to(ROOT / "examples")
        command = folder / "bin" / "trainmaster"  # of this checkout, wherever the environment was set up for
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m trainmaster "$@"\n')
        command.chmod(0o755)

    def start(self) -> "subprocess.Popen[bytes]":
        """The stack of the first section, once it is ready."""
        (_, command), (_, variables) = self.sections["Start the stack"]
        self._variables = variables.splitlines()
        with (self.folder / "up.log").open("wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        ready = self.folder / ".trainmaster" / "stack.env"
        try:
            eventually(
                lambda: ready.exists() or process.poll() is not None,
                "the stack is ready",
                deadline_s=START_DEADLINE_S,
                hint=self.log,
            )
            assert ready.exists(), self.log()
        except BaseException:
            stop(process)
            raise
        return process

    def follow(self, title: str) -> list[str]:
        """What each command of a section printed at last.

        One that reads a status is repeated until the run has ended; one that reads a champion, until the run is in it.
        """
        commands = [line for kind, text in self.sections[title] if kind == "sh" for line in text.splitlines()]
        printed: list[str] = []
        run_id = ""
        for command in commands:
            if "/status/" in command:
                printed.append(self._repeated(command, has_ended))
                run_id = json.loads(printed[-1])["run_id"]
            elif "/champions/" in command:
                printed.append(self._repeated(command, functools.partial(names, run_id)))
            else:
                printed.append(self.run(command))
        return printed

    def run(self, command: str) -> str:
        script = "\n".join([*self._variables, command])
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        not_yet = "No such file" in done.stderr and command.startswith("cat ")
        assert done.returncode == 0 or not_yet, (command, done.stderr, self.log())
        return done.stdout

    def log(self) -> str:
        return (self.folder / "up.log").read_text(errors="replace")[-3000:]

    def _repeated(self, command: str, is_enough: Callable[[str], bool]) -> str:
        def printed() -> str | None:
            text = self.run(command)
            return text if text and is_enough(text) else None

        return eventually(printed, command, deadline_s=DEADLINE_S, hint=lambda: self.run(command))


def names(run_id: str, document: str) -> bool:
    return f'"{run_id}"' in document


def has_ended(status: str) -> bool:
    return json.loads(status)["state"] in ENDED


def without_numbers(line: str) -> str:
    return re.sub(r"\d[\w.:-]*", "#", line.strip())


def assert_shown(blocks: list[tuple[str, str]], printed: list[str]) -> None:
    """Every line that a section shows of an answer is in what was printed, but for its numbers."""
    found = {without_numbers(line) for text in printed for line in text.splitlines()}
    lines = [line for kind, text in blocks if kind == "json" for line in text.splitlines()]
    assert lines
    assert [line for line in lines if without_numbers(line) not in found] == []
