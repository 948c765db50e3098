"""Run `trainmaster` in this process, with a separate folder and environment: a new process would start more slowly."""

import io
import os
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from trainmaster.cli.command import main


@dataclass(frozen=True, kw_only=True)
class Done:
    """How the command ended, and what it printed."""

    status: int
    out: str
    err: str


def trainmaster(*words: str, cwd: Path, environment: Mapping[str, str], text: str = "") -> Done:
    """The command with `text` on its standard input."""
    out, err = io.StringIO(), io.StringIO()
    given = io.TextIOWrapper(io.BytesIO(text.encode()))
    with (
        patch.object(sys, "stdin", given),
        chdir(cwd),
        patch.dict(os.environ, environment, clear=True),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            status = main(words)
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Done(status=status, out=out.getvalue(), err=err.getvalue())
