"""Helpers of the tests that install into a separate environment."""

import os
import subprocess
from pathlib import Path

from uv import find_uv_bin

from tests.processes import run_to_end
from trainstack.jobs.images.indexes import settings_of_uv

NEVER_IMPORTED = (
    r"/aiplatform_v1/services/(?!job_service|client_|__)|/(_storage_v2|agentplatform|aiplatform|aiplatform_v1beta1|"
    r"bigquery|genai|lexers|numpy|pydantic|resourcemanager_v3|sqlalchemy|vertexai)/"
)
"""Packages and parts of packages that no process of these tests imports: most of the lines of an installation."""


def compile_packages(python: Path) -> None:
    """Compile an environment's packages once; otherwise every process that starts meanwhile would do so."""
    packages = python.parent.parent / "lib"
    command = [str(python), "-m", "compileall", "-q", "-x", NEVER_IMPORTED, str(packages)]
    subprocess.run(
        command, check=False, capture_output=True
    )  # some packages contain templates, which are not valid Python


def run_uv(*words: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run the locked uv with the package index that this machine's user has chosen, for uv or only for pip."""
    settings = settings_of_uv(os.environ, home=Path.home())
    options = settings.options if words[0] == "pip" else ()
    return run_to_end([find_uv_bin(), *words, *options], env=settings.environment, check=check, timeout=300)
