"""The functions' source directory: the one given, or the repository's own staged as for a deployment."""

import sys
from pathlib import Path

from trainmaster.local.process import ProcessGuard, Stream
from trainmaster.local.stack.errors import StackRefusedError
from trainmaster.resources import IMPORTED_FROM


async def source_directory(given: Path | None, *, destination: Path, guard: ProcessGuard) -> Path:
    """Where `main.py` is.

    Without `given`, the repository's functions are staged to `destination` first, anew at every start.

    Raises:
        StackRefusedError: staging ended with an error.
    """
    if given is not None:
        return given
    output: list[bytes] = []

    def keep(_stream: Stream, lines: list[bytes]) -> None:
        output.extend(lines)

    staging = guard.start(
        [sys.executable, "-m", "trainmaster.deploy.stage", str(destination)],
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        cwd=IMPORTED_FROM,
        on_lines=keep,
    )
    if code := await staging.wait():
        said = b"\n".join(output).decode(errors="replace")
        raise StackRefusedError(f"trainmaster/staging ended with status {code}:\n{said}")
    return destination
