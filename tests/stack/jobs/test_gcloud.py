"""`gcloud ai custom-jobs` and `gcloud ai hp-tuning-jobs`; collected only where gcloud is installed."""

import json
from pathlib import Path

import pytest
import yaml

from tests.stack.gcloud import Gcloud, gcloud_of

from .conftest import PROGRAM, Stack
from .studies import REPORT, ended

HERE = ("--region=us-central1", "--format=json")


@pytest.fixture
def gcloud(stack: Stack, tmp_path: Path) -> Gcloud:
    return gcloud_of("ai", api="AIPLATFORM", url=f"{stack.url}/", project="p1", folder=tmp_path)


@pytest.mark.slow
def test_gcloud_creates_and_describes_tuning_jobs(stack: Stack, gcloud: Gcloud, tmp_path: Path) -> None:
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
    options = ("--display-name=h1", f"--config={config}", *counts, *HERE)
    name = json.loads(gcloud("hp-tuning-jobs", "create", *options))["name"]
    ended(stack, name)
    described = json.loads(gcloud("hp-tuning-jobs", "describe", name, *HERE))
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


@pytest.mark.slow
def test_gcloud_creates_lists_describes_and_deletes_persistent_resources(gcloud: Gcloud) -> None:
    pool = "--resource-pool-spec=replica-count=2,machine-type=n1-standard-4"
    gcloud("persistent-resources", "create", "--persistent-resource-id=pool", "--display-name=d", pool, *HERE)
    described: dict[str, str] = {}
    for _ in range(30):
        described = json.loads(gcloud("persistent-resources", "describe", "pool", *HERE))
        if described["state"] == "RUNNING":
            break
    assert (described["displayName"], described["state"]) == ("d", "RUNNING")
    (listed,) = json.loads(gcloud("persistent-resources", "list", *HERE))
    assert listed["resourcePools"][0]["replicaCount"] == "2"
    gcloud("persistent-resources", "delete", "pool", *HERE)
    for _ in range(30):
        if not (left := json.loads(gcloud("persistent-resources", "list", *HERE))):
            break
    assert left == []
