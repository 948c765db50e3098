"""The command works in the cloud from machines that are not Linux: only what starts a local stack needs Linux."""

import json
import sys
from pathlib import Path

from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]
START_A_STACK = {"trainmaster.cli.stack.detach", "trainmaster.cli.stack.process"}
OF_THE_PROTOCOL = "trainmaster.cli.mcp.server"
"""The official SDK needs fcntl, which macOS has too."""
PLAY_ON_A_STACK = "trainmaster.cli.demo."
IMPORT_ALL = """
import importlib, json, pkgutil, sys
import trainmaster.cli, trainmaster.client

ABSENT = ("fcntl", "resource", "trainstack.storage.drops.inotify")

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in ABSENT:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Absent())
failed = {}
for package in (trainmaster.cli, trainmaster.client):
    for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}.", onerror=lambda name: None):
        try:
            importlib.import_module(each.name)
        except ModuleNotFoundError as error:
            failed[each.name] = error.name
print(json.dumps([len(sys.modules), failed]))
"""


def test_only_modules_that_start_a_local_stack_need_modules_that_only_linux_has() -> None:
    done = run_to_end([sys.executable, "-c", IMPORT_ALL], cwd=ROOT, timeout=200, check=True)
    count, failed = json.loads(done.stdout)
    assert count > 100  # everything was imported
    others = {name: needs for name, needs in failed.items() if not name.startswith(PLAY_ON_A_STACK)}
    assert set(others) == {*START_A_STACK, OF_THE_PROTOCOL}, others
