"""An instance's first events come together, and each needs another library of Google's."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_library_is_imported_while_another_is_half_imported() -> None:
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}",
        "STORAGE_EMULATOR_HOST": "http://127.0.0.1:1",
        "GOOGLE_CLOUD_PROJECT": "my-project",
    }
    command = [sys.executable, str(ROOT / "tests" / "contract" / "first_events.py")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout) == {"reached": True, "meanwhile": [], "failures": []}
