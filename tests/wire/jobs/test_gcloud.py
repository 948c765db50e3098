"""`gcloud ai custom-jobs`, where it is on this machine."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import PROGRAM, Stack

GCLOUD = shutil.which("gcloud")

if GCLOUD is not None:
    # Not collected on a machine without gcloud: nothing there can say whether it would pass.

    def gcloud(stack: Stack, tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
        assert GCLOUD is not None
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_PROJECT": "p1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
            "CLOUDSDK_AI_REGION": "us-central1",
            "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"{stack.url}/",
        }
        command = [GCLOUD, "ai", "custom-jobs", *words, "--format=json"]
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)

    @pytest.mark.slow  # each call of gcloud takes seconds
    def test_gcloud_creates_describes_lists_and_cancels(stack: Stack, tmp_path: Path) -> None:
        config = tmp_path / "job.yaml"
        config.write_text(
            "workerPoolSpecs:\n"
            "- machineSpec: {machineType: n1-standard-4}\n"
            "  replicaCount: 1\n"
            f"  containerSpec: {{imageUri: {PROGRAM}, args: [sleep=600]}}\n"
            "scheduling: {strategy: SPOT, timeout: 3600s}\n"
        )
        created = gcloud(stack, tmp_path, "create", "--display-name=g1", f"--config={config}", "--labels=k=v")
        assert created.returncode == 0, created.stderr
        assert "is submitted successfully" in created.stderr
        name = json.loads(created.stdout)["name"]
        described = json.loads(gcloud(stack, tmp_path, "describe", name).stdout)
        assert described["jobSpec"]["scheduling"] == {"strategy": "SPOT", "timeout": "3600s"}
        assert [job["name"] for job in json.loads(gcloud(stack, tmp_path, "list").stdout)] == [name]
        cancelled = gcloud(stack, tmp_path, "cancel", name.rpartition("/")[2])
        assert cancelled.returncode == 0, cancelled.stderr
        assert stack.ended(name).state.name == "JOB_STATE_CANCELLED"
        missing = gcloud(stack, tmp_path, "describe", "9")
        assert missing.returncode == 1
        assert "NOT_FOUND" in missing.stderr
