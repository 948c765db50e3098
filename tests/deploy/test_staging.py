"""The deployed source is staged whole, light to import, and self-contained."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import run_to_end
from trainmaster.deploy.stage import stage
from trainmaster.orchestrator.settings import REQUIRED

ROOT = Path(__file__).resolve().parents[2]
HEAVY = (
    "google.cloud.aiplatform",
    "google.cloud.pubsub",
    "google.cloud.storage",
    "tensorflow",
    "grpc",
    "jsonschema",
)


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return run_to_end([sys.executable, *arguments], env={"PATH": os.environ["PATH"], **environment}, cwd="/")


IMPORTED = f"""
import sys, main
print([name for name in sys.modules if name.startswith({HEAVY!r})])
"""


def test_importing_main_loads_no_heavy_library() -> None:
    done = python("-c", IMPORTED, PYTHONPATH=f"{ROOT / 'functions'}:{ROOT}")
    assert done.stdout.strip() == "[]", done.stderr


def test_the_staged_source_is_self_contained_and_finds_its_schemas(staged: Path) -> None:
    code = "import main, trainmaster.orchestrator.settings as s; print(s.schemas_dir(s.SOURCE_DIR))"
    done = python("-c", code, PYTHONPATH=str(staged))
    assert done.stdout.strip() == str(staged / "schemas"), done.stderr
    assert (staged / "schemas" / "training_request.v1.schema.json").is_file()


OPENED = """
import os, sys
opened = set()
sys.addaudithook(lambda event, args: opened.add(str(args[0])) if event == "open" else None)
from trainmaster.orchestrator.settings import settings_from
from trainmaster.orchestrator.wiring import Wiring
services = Wiring(settings_from(os.environ)).services()
services.request_rules(), services.prices(), services.export_schema()
print(*sorted(name for path in opened if (name := os.path.basename(path)).endswith(".schema.json")))
"""


def test_the_staged_schemas_are_those_that_the_functions_read(staged: Path) -> None:
    environment = {
        **dict.fromkeys(REQUIRED, "some-name"),
        "TRAINMASTER_FUNCTION_TIMEOUT_S": "60",
        "GOOGLE_CLOUD_PROJECT": "some-project",
    }
    done = python("-c", OPENED, PYTHONPATH=str(staged), **environment)
    assert done.stdout.split() == sorted(path.name for path in (staged / "schemas").iterdir()), done.stderr


def test_a_local_stack_compiles_none_of_its_staged_modules_again(tmp_path: Path) -> None:
    staged = tmp_path / "functions"
    stage(staged, bytecode=True)
    before = compiled(staged / "trainmaster" / "orchestrator")
    assert python("-c", "import main", PYTHONPATH=str(staged)).returncode == 0
    assert before
    assert compiled(staged / "trainmaster" / "orchestrator") == before


def compiled(folder: Path) -> dict[str, int]:
    """The compiled modules below the folder, each with the time when it was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.pyc")}


def test_the_staged_source_is_small_and_has_no_caches(tmp_path: Path) -> None:
    stage(tmp_path / "functions")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 1_520_000
    assert not [path for path in files if "__pycache__" in path.parts]


def test_staging_replaces_what_it_staged_and_nothing_else(tmp_path: Path) -> None:
    stage(tmp_path / "functions")
    stage(tmp_path / "functions")
    (tmp_path / "precious").write_text("x")
    with pytest.raises(FileExistsError, match="contains other files"):
        stage(tmp_path)
