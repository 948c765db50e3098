"""What the tests that install into an environment of their own share."""

import subprocess
from pathlib import Path

NEVER_IMPORTED = r"/(aiplatform_v1beta1|aiplatform_v1/services/(?!job_service|client_|__)|vertexai|genai)"
"""Most of the lines of an installation: parts of Google's client of Vertex AI that nothing here loads."""


def compile_packages(python: Path) -> None:
    """Compile an environment's packages once; else every process that starts at the same time would."""
    packages = python.parent.parent / "lib"
    command = [str(python), "-m", "compileall", "-q", "-x", NEVER_IMPORTED, str(packages)]
    subprocess.run(command, check=False, capture_output=True)  # packages hold templates that are no Python
