"""`gcloud ai custom-jobs` and `gcloud ai hp-tuning-jobs`, where gcloud is on this machine."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from .conftest import PROGRAM, Stack
from .studies import REPORT, ended

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
        command = [GCLOUD, "ai", *words, "--format=json"]
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
        created = gcloud(
            stack,
            tmp_path,
            "custom-jobs",
            "create",
            "--display-name=g1",
            f"--config={config}",
            "--labels=k=v",
        )
        assert created.returncode == 0, created.stderr
        assert "is submitted successfully" in created.stderr
        name = json.loads(created.stdout)["name"]
        described = json.loads(gcloud(stack, tmp_path, "custom-jobs", "describe", name).stdout)
        assert described["jobSpec"]["scheduling"] == {"strategy": "SPOT", "timeout": "3600s"}
        assert [job["name"] for job in json.loads(gcloud(stack, tmp_path, "custom-jobs", "list").stdout)] == [
            name
        ]
        cancelled = gcloud(stack, tmp_path, "custom-jobs", "cancel", name.rpartition("/")[2])
        assert cancelled.returncode == 0, cancelled.stderr
        assert stack.ended(name).state.name == "JOB_STATE_CANCELLED"
        missing = gcloud(stack, tmp_path, "custom-jobs", "describe", "9")
        assert missing.returncode == 1
        assert "NOT_FOUND" in missing.stderr

    @pytest.mark.slow
    def test_gcloud_creates_and_describes_tuning_jobs(stack: Stack, tmp_path: Path) -> None:
        rate = {"parameterId": "x", "doubleValueSpec": {"minValue": 0.001, "maxValue": 1},
                "scaleType": "UNIT_LOG_SCALE"}  # fmt: skip
        layers = {"parameterId": "layers", "integerValueSpec": {"minValue": 1, "maxValue": 4}}
        deep = {"parameterSpec": layers, "parentCategoricalValues": {"values": ["deep"]}}
        kind = {"parameterId": "kind", "categoricalValueSpec": {"values": ["deep"]},
                "conditionalParameterSpecs": [deep]}  # fmt: skip
        program = {"imageUri": PROGRAM, "command": ["python"], "args": ["-c", REPORT + "report(x, 1)"]}
        pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": program}
        written = {
            "studySpec": {
                "metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}],
                "parameters": [rate, kind],
                "algorithm": "RANDOM_SEARCH",
                "measurementSelectionType": "BEST_MEASUREMENT",
            },
            "trialJobSpec": {"workerPoolSpecs": [pool]},
        }
        config = tmp_path / "study.yaml"
        config.write_text(yaml.safe_dump(written))
        counts = ("--max-trial-count=3", "--parallel-trial-count=2", "--labels=k=v")
        created = gcloud(
            stack, tmp_path, "hp-tuning-jobs", "create", "--display-name=h1", f"--config={config}", *counts
        )
        assert created.returncode == 0, created.stderr
        name = json.loads(created.stdout)["name"]
        ended(stack, name)
        described = json.loads(gcloud(stack, tmp_path, "hp-tuning-jobs", "describe", name).stdout)
        assert described["state"] == "JOB_STATE_SUCCEEDED"
        assert (described["maxTrialCount"], described["parallelTrialCount"]) == (3, 2)
        assert described["studySpec"]["parameters"][1]["conditionalParameterSpecs"][0] == {
            **deep,
            "parameterSpec": {
                "parameterId": "layers",
                "integerValueSpec": {"minValue": "1", "maxValue": "4"},
            },
        }
        assert [(trial["id"], trial["state"]) for trial in described["trials"]] == [
            (str(at), "SUCCEEDED") for at in (1, 2, 3)
        ]
        values = {one["parameterId"]: one["value"] for one in described["trials"][0]["parameters"]}
        assert values["kind"] == "deep"
        assert values["layers"] in {1, 2, 3, 4}
        assert described["trials"][0]["finalMeasurement"]["stepCount"] == "1"
