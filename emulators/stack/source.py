"""The functions' source directory: the one given, or the repository's own staged as for a deployment."""

import sys
from pathlib import Path

from emulators.process import ProcessGuard, Stream
from emulators.stack.errors import FunctionsError
from emulators.stack.options import ROOT


async def source_directory(given: Path | None, *, destination: Path, guard: ProcessGuard) -> Path:
    """Where `main.py` is.

    Without `given`, the repository's functions are staged to `destination` first, anew at every start.

    Raises:
        FunctionsError: staging ended with an error.
    """
    if given is not None:
        return given
    output: list[bytes] = []

    def keep(_stream: Stream, lines: list[bytes]) -> None:
        output.extend(lines)

    staging = guard.start(
        [sys.executable, str(ROOT / "deploy" / "stage.py"), str(destination)],
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        cwd=ROOT,
        on_lines=keep,
    )
    if code := await staging.wait():
        said = b"\n".join(output).decode(errors="replace")
        raise FunctionsError(f"deploy/stage.py ended with status {code}:\n{said}")
    return destination
