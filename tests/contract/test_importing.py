"""An instance's first events arrive at once, and each needs a different Google library: one is imported at a time."""

import os
import sys
from pathlib import Path

from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]


CLIENTS = """
import sys
from trainmaster.orchestrator.adapters.cloud_logging import CloudJobLogs
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.partial_import import IMPORTING

found = {True: [], False: []}

class Watch:
    def find_spec(self, name, path=None, target=None):
        found[IMPORTING._is_owned()].append(name)

sys.meta_path.insert(0, Watch())
VertexJobs(project="p", endpoint="http://127.0.0.1:1")._client("us-central1")
GcsObjects("p")._client
CloudJobLogs(project="p", endpoint="http://127.0.0.1:1")._credentials
for name in ("aiplatform_v1.services.job_service", "storage"):
    assert f"google.cloud.{name}" in found[True], name
assert found[False] == [], found[False]
"""


def run(code: str, **environment: str) -> None:
    """In a separate process, as a library is imported only once."""
    ended = run_to_end(
        [sys.executable, "-c", code], env={"PATH": os.environ["PATH"], **environment}, cwd=ROOT, timeout=200
    )
    assert ended.returncode == 0, ended.stderr


def test_every_module_of_a_service_library_is_imported_under_the_one_lock() -> None:
    run(CLIENTS, STORAGE_EMULATOR_HOST="http://127.0.0.1:1")


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
    run(PARTS)


STACK = """
import sys
from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of

import_parts_of(*VERTEX_CLIENT)
import trainstack.stack.services
from trainstack.vertex.resources.methods import methods

assert any(method.name == "UploadModel" for _, method in methods())
assert "google.cloud.aiplatform_v1.types.model_service" in sys.modules
assert "google.cloud.aiplatform_v1.types.prediction_service" not in sys.modules
"""


def test_the_services_of_a_stack_load_only_the_messages_that_they_use() -> None:
    run(STACK)
