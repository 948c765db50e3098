"""Writes docs/reference/faults.md from the faults that the tests make: `python -m tests.repo.faults`.

It runs the tests of the core and of the flows that refuse documents, which takes about two minutes, and exits with 1
if there is a fault that none of them makes.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.repo.faults.page import PAGE, expected, rendered
from tests.repo.faults.recorder import OUTPUT
from tests.repo.faults.sites import ROOT

TESTS = (
    "tests/core",
    *(f"tests/contract/test_{name}.py" for name in ("cancel", "champions", "rejections", "retrain", "turns")),
)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "examples.json"
        command = [sys.executable, "-m", "pytest", *TESTS, "-q", "-p", "tests.repo.faults.recorder"]
        subprocess.run(command, cwd=ROOT, env={**os.environ, OUTPUT: str(output)}, check=True)
        examples: dict[str, dict[str, str]] = json.loads(output.read_text())
    PAGE.write_text(rendered(examples))
    missing = [
        f"{path}: no test makes the fault {pattern!r}"
        for path, patterns in expected().items()
        for pattern in patterns
        if pattern not in examples.get(path, {})
    ]
    sys.stdout.write("".join(f"{line}\n" for line in missing))
    return 1 if missing else 0


sys.exit(main())
