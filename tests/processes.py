"""Other programs, run to their end."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


# Any: options of subprocess.run.
def run_to_end(
    words: Sequence[str | Path], *, check: bool = False, **more: Any
) -> "subprocess.CompletedProcess[str]":
    """The ended program, with what it printed as text."""
    return subprocess.run(words, check=check, capture_output=True, text=True, **more)
