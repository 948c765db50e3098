"""The commands that start a run with the files of a folder."""

import shlex
from pathlib import Path

REQUEST = "request.yaml"
SCRIPT = "train.py"
"""What `trainmaster init` writes."""


def first_commands(folder: Path) -> list[tuple[str, str]]:
    """How to start a run with what lies in the folder: titles with commands.

    The script is train.py, else the only Python file.
    """
    scripts = sorted(path.name for path in folder.glob("*.py"))
    script = SCRIPT if SCRIPT in scripts else "".join(scripts[:1] if len(scripts) == 1 else ())
    if script and not (folder / REQUEST).exists():
        return [(f"Run {script}", f"trainmaster submit --script {shlex.quote(script)} --logs")]
    init = [] if (folder / REQUEST).exists() else [("Write a first request", "trainmaster init")]
    return [*init, ("Submit it", f"trainmaster submit {REQUEST} --logs")]
