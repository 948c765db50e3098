"""Runs of the environment's own pip."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from tools.set_up import pip_failures
from tools.set_up.progress import InstallationProgress

POLL_S = 0.2
LOG = "set-up.log"


def packages_folder(environment: Path) -> Path:
    return environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def run_pip(
    environment: Path, arguments: Sequence[str], progress: InstallationProgress | None = None
) -> None:
    """Run pip with its configured package index, and show its progress in place of its output.

    Raises:
        SystemExit: pip failed; the exit's sentences say why, and that `LOG` in the environment has pip's whole output,
            or why it cannot be written.
    """
    lines: list[str] = []
    with subprocess.Popen(
        [environment / "bin" / "python", "-m", "pip", *arguments],
        env=_pip_variables(),
        stdin=subprocess.DEVNULL,  # its questions would not be visible
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        reader = threading.Thread(target=_read_lines, args=(process.stdout, lines), daemon=True)
        reader.start()
        while process.poll() is None:
            time.sleep(POLL_S)
            if progress:
                progress.show("".join(lines))
        reader.join()
    output = "".join(lines)
    if progress:
        progress.show(output, last=True)
    if process.returncode != 0:
        sys.exit(
            f"{pip_failures.sentence_for(output, environment)}\n{_keep_output(output, environment / LOG)}"
        )


def _keep_output(output: str, log: Path) -> str:
    """Write the log, and return the sentence that says where it is or why it is not."""
    try:
        log.write_text(output)
    except OSError as error:
        return f"pip's output could not be kept in {log}: {error.strerror}."
    return f"pip's output is in {log}."


def _read_lines(printed: IO[str] | None, lines: list[str]) -> None:
    for line in printed or ():
        lines.append(line)  # noqa: PERF402 - the other thread reads the list meanwhile


def _pip_variables() -> dict[str, str]:
    """This process's, less those that would let pip find or put packages elsewhere."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    return {**kept, "PYTHONUNBUFFERED": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
