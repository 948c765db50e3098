"""gcloud, as a second opinion of a service of the stack."""

import os
from collections.abc import Callable
from pathlib import Path

from tests.processes import run_to_end

Gcloud = Callable[..., str]
"""Runs one command of a group, and returns its standard output."""


def gcloud_of(group: str, *, api: str, url: str, project: str, folder: Path) -> Gcloud:
    """The commands of `group` against the API at `url`, with a configuration of their own in `folder`."""
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(folder / "gcloud"),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "1",
        "CLOUDSDK_CORE_PROJECT": project,
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{api}": url,
    }

    def run(*arguments: str) -> str:
        command = ["gcloud", group, *arguments]
        done = run_to_end(command, env=environment, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
