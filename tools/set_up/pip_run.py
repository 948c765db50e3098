"""Runs of the environment's own pip."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.set_up import pip_failures

LOG = "set-up.log"
_TAKEN = ("Collecting ", "Processing ", "Requirement already satisfied: ", "Ignoring ")


def packages_folder(environment: Path) -> Path:
    return environment / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"


def run_pip(environment: Path, arguments: Sequence[str], *, shown_packages: int = 0) -> None:
    """Run pip with its configured package index, and print how far it is with `shown_packages`.

    Raises:
        SystemExit: pip failed; the exit's sentences say why, and that `LOG` in the environment has pip's whole output,
            or why it cannot be written.
    """
    lines: list[str] = []
    before, after, step = ("\r\x1b[K", "", 1) if sys.stdout.isatty() else ("", "\n", 40)
    with subprocess.Popen(
        [environment / "bin" / "python", "-m", "pip", *arguments],
        env=_pip_variables(),
        stdin=subprocess.DEVNULL,  # its questions would not be visible
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in process.stdout or ():
            lines.append(line)
            done = sum(line.startswith(_TAKEN) for line in lines)
            if shown_packages and line.startswith(_TAKEN) and done % step == 0:
                print(f"{before}  downloaded {done} of {shown_packages}", end=after, flush=True)
            elif shown_packages and line.startswith("Installing collected"):
                print(f"{before}  downloaded {done} of {shown_packages}; installing them", flush=True)
    output = "".join(lines)
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


def _pip_variables() -> dict[str, str]:
    """This process's, less those that would let pip find or put packages elsewhere."""
    kept = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "PYTHONHOME"}}
    return {**kept, "PYTHONUNBUFFERED": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0"}
