"""The job that tries out a champion's model: what it is submitted as, and its program on models of this machine."""

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainmaster.orchestrator.core.champions.smoke import (
    MODEL,
    PROGRAM,
    SMOKE_FOLDER,
    smoke_spec,
)
from trainmaster.orchestrator.core.completion.model import format_of, parse_scores
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy
from trainmaster.orchestrator.core.requests.evaluation import evaluation_output_uri, follow_up_submission
from trainmaster.orchestrator.core.requests.script import VARIABLE
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.requests.submission import Target
from trainmaster.orchestrator.core.runs.end import SMOKE

REQUEST: dict[str, Any] = {
    "model_name": "digits",
    "image": "us-docker.pkg.dev/p/r/i:1",
    "args": ["--C=1"],
    "env": {"KEY": "value"},
    "labels": {"cost-center": "ml"},
    "cluster": {"chief": {"machine": "n1-standard-8"}, "workers": {"machine": "n1-standard-8", "count": 2}},
}
ARCHIVE = "gs://data/scripts/a.tar.gz"
PREDICT = '{"instances": [[1, 2], [3, 4]]}'
KERAS = {"saved_model.pb": "saved_model", "model.keras": "keras"}
UNPICKLED = "class Sum:\n    def predict(self, rows):\n        return [float(sum(row)) for row in rows]\n"


@pytest.mark.parametrize("script", [None, {"file": "train.py", "archive": ARCHIVE}])
def test_the_job_is_one_replica_in_the_image_of_the_run_with_the_packages_of_its_script(
    script: dict[str, str] | None,
) -> None:
    trained = spec_from({**REQUEST, **({"script": script} if script else {})})
    output_uri = evaluation_output_uri("champions", "vision", f"{SMOKE_FOLDER}/digits", "run")
    assert output_uri == "gs://champions/_evaluations/vision/_smoke/digits/run"
    spec = smoke_spec(trained, EvaluationPolicy(machine="e2-standard-4", timeout_s=600), {"model": "gs://m"})
    target = Target(project="p", region="r", models_bucket="m", service_account="tm-eval@p")
    body: Any = follow_up_submission("run", SMOKE, spec, output_uri, target).body
    (pool,) = body["jobSpec"]["workerPoolSpecs"]
    assert (pool["replicaCount"], pool["machineSpec"]) == ("1", {"machineType": "e2-standard-4"})
    container = pool["containerSpec"]
    assert (container["imageUri"], container["args"]) == (REQUEST["image"], ["--model=gs://m"])
    assert container["command"][-1] == PROGRAM
    assert container.get("env", []) == ([{"name": VARIABLE, "value": ARCHIVE}] if script else [])
    assert body["jobSpec"]["serviceAccount"] == "tm-eval@p"
    assert body["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": output_uri}
    assert body["labels"].items() >= {"cost-center": "ml", "trainmaster_step": "smoke"}.items()
    assert "$(" not in PROGRAM  # the service would look for a variable


def tried_out(root: Path, form: str, example: str | None = PREDICT, **environment: str) -> Any:
    """What the program leaves about the model in ROOT/models/m."""
    if example is not None:
        (root / "models/m/example.json").write_text(example)
    gs = {"model": "models/m/", "example": "models/m/example.json", "output": "champions/out"}
    arguments = [f"--format={form}", *(f"--{name}=gs://{path}" for name, path in gs.items())]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env={"TRAINMASTER_GCS_ROOT": str(root), **environment},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return parse_scores((root / "champions/out/metrics.json").read_bytes(), [MODEL], "smoke test")


@pytest.fixture
def pickled(tmp_path: Path) -> Path:
    """A folder of buckets with a pickled model, whose class is in the folder `code`."""
    folder, code = tmp_path / "models/m", tmp_path / "code"
    folder.mkdir(parents=True)
    code.mkdir()
    (code / "sums.py").write_text(UNPICKLED)
    write = "import pickle, sums, sys; pickle.dump(sums.Sum(), open(sys.argv[1], 'wb'))"
    subprocess.run([sys.executable, "-c", write, str(folder / "model.pkl")], cwd=code, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("example", "outcome"),
    [
        (PREDICT, {MODEL: {"predictions": 2}}),
        ("[[1, 2]]", {MODEL: {"predictions": 1}}),
        ('{"instances": [[NaN]]}', "ValueError: a prediction is not finite: [nan]"),
        ('{"rows": []}', "KeyError: 'instances'"),
        ("{", "JSONDecodeError: Expecting property name"),
        (None, "FileNotFoundError: "),
    ],
)
def test_a_model_must_predict_a_finite_value_for_each_instance(
    pickled: Path, example: str | None, outcome: object
) -> None:
    found = tried_out(pickled, "pickle", example, PYTHONPATH=str(pickled / "code"))
    assert found == outcome if not isinstance(outcome, str) else found.startswith(outcome)


def test_a_model_that_cannot_be_loaded_fails_with_the_error(pickled: Path) -> None:
    assert tried_out(pickled, "pickle") == "ModuleNotFoundError: No module named 'sums'"
    (pickled / "models/m/other.pkl").write_bytes(pickle.dumps(1))
    reason = "ValueError: expected one file that ends in .pkl or .pickle, found 2"
    assert tried_out(pickled, "pickle") == reason


@pytest.mark.slow
def test_a_model_of_keras_predicts(tmp_path: Path) -> None:
    folders = {name: tmp_path / form / "models/m" for name, form in KERAS.items()}
    for folder in folders.values():
        folder.mkdir(parents=True)
    build = (
        "import sys, keras; model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]);"
        " model.export(sys.argv[1]); model.save(sys.argv[2] + '/model.keras')"
    )
    subprocess.run(
        [sys.executable, "-c", build, *map(str, folders.values())], check=True, capture_output=True
    )
    for name, form in KERAS.items():
        assert format_of([name]) == form
        assert tried_out(tmp_path / form, form) == {MODEL: {"predictions": 2}}
