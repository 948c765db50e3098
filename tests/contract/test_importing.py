"""An instance's first events arrive at once, and each needs a different Google library."""

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


PARTS = """
import sys
from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of

import_parts_of(*VERTEX_CLIENT)
from google.cloud.aiplatform_v1.services.job_service import JobServiceClient

loaded = [name for name in sys.modules if name.startswith("google.cloud.aiplatform_v1.services.")]
assert all(name.split(".")[4] == "job_service" for name in loaded), loaded
from google.cloud.aiplatform_v1.types.custom_job import CustomJob
assert "google.cloud.aiplatform_v1.types.model_service" not in sys.modules
try:
    from google.cloud.aiplatform_v1 import NoSuchName
except ImportError:
    pass
else:
    raise AssertionError("a name that the package lacks was found")
from google.cloud.aiplatform_v1.types import CustomJob as SameJob, UploadModelRequest
assert SameJob is CustomJob
assert "google.cloud.aiplatform_v1.types.model_service" in sys.modules
from google.cloud import aiplatform_v1
assert aiplatform_v1.JobServiceClient is JobServiceClient
assert aiplatform_v1.CustomJob is CustomJob
assert aiplatform_v1.ModelServiceClient.__module__.startswith("google.cloud.aiplatform_v1.services.model_service")
import_parts_of(*VERTEX_CLIENT)
assert sys.modules["google.cloud.aiplatform_v1"] is aiplatform_v1
"""


def test_a_part_of_a_package_is_imported_alone_and_the_rest_once_it_is_asked_for() -> None:
    command = [sys.executable, "-c", PARTS]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 0, ended.stderr
