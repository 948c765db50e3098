"""What a program must fit is read from every dialect, and from the Dockerfile beside the source."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from trainmaster.inspect.faults import Unusable
from trainmaster.inspect.request.read import request_in
from trainmaster.inspect.request.request import Kind, Parameter
from trainmaster.inspect.surroundings import Surroundings, surroundings_of, tensorflow_of

ROOT = Path(__file__).resolve().parents[2]

OWN = """
model_name: m
image: r/p/i:1
args: [--epochs=1]
env: {A: "1", B: "2"}
cluster:
  chief: {machine: n1-standard-4, env: {B: "3"}}
  workers: {count: 2, machine: n1-standard-4}
  parameter_servers: {count: 1, machine: n1-standard-4, image: other}
  evaluators: {count: 1, machine: n1-standard-4}
  replica_environment: ai_platform
scheduling: {restart_on_worker_restart: true}
tuning:
  metrics: [{id: accuracy, goal: maximize}]
  parameters:
    learningRate: {type: double, min: 0.5, max: 1}
    units: {type: integer, min: 2, max: 4}
    batch: {type: discrete, values: [64, 128]}
    optimizer:
      type: categorical
      values: [adam, sgd]
      conditional: [{when: [sgd], parameters: {momentum: {type: double, min: 0, max: 1}}}]
"""

VERTEX = """
studySpec:
  metrics: [{metricId: accuracy, goal: MAXIMIZE}]
  parameters:
    - {parameterId: learningRate, doubleValueSpec: {minValue: 0.5, maxValue: 1}}
    - {parameterId: units, integerValueSpec: {minValue: "2", maxValue: "4"}}
    - {parameterId: batch, discreteValueSpec: {values: [64, 128]}}
    - parameterId: optimizer
      categoricalValueSpec: {values: [adam, sgd]}
      conditionalParameterSpecs:
        - parentCategoricalValues: {values: [sgd]}
          parameterSpec: {parameterId: momentum, doubleValueSpec: {maxValue: 1}}
trialJobSpec:
  workerPoolSpecs:
    - replicaCount: 1
      containerSpec: {imageUri: "r/p/i:1", args: [--epochs=1], env: [{name: A, value: "1"}, {name: B, value: "3"}]}
    - {replicaCount: "2", containerSpec: {imageUri: "r/p/i:1"}}
    - {replicaCount: 1, containerSpec: {imageUri: other}}
    - {replicaCount: 1, containerSpec: {imageUri: "r/p/i:1"}}
  scheduling: {restartJobOnWorkerRestart: true}
"""

LEGACY = """
trainingInput:
  scaleTier: CUSTOM
  masterConfig: {imageUri: "r/p/i:1"}
  args: [--epochs=1]
  workerCount: 2
  parameterServerCount: 1
  parameterServerConfig: {imageUri: other}
  evaluatorCount: 1
  useChiefInTfConfig: false
  jobDir: gs://b/o
  hyperparameters:
    goal: MAXIMIZE
    hyperparameterMetricTag: accuracy
    params:
      - {parameterName: learningRate, type: DOUBLE, minValue: 0.5, maxValue: 1}
      - {parameterName: units, type: INTEGER, minValue: 2, maxValue: 4}
      - {parameterName: batch, type: DISCRETE, discreteValues: [64, 128]}
      - {parameterName: optimizer, type: CATEGORICAL, categoricalValues: [adam, sgd]}
"""

PARAMETERS = (
    Parameter(name="learningRate", kind=Kind.DOUBLE, sample="0.5"),
    Parameter(name="units", kind=Kind.INTEGER, sample="2"),
    Parameter(name="batch", kind=Kind.DISCRETE, sample="64.0"),
    Parameter(name="optimizer", kind=Kind.CATEGORICAL, sample="adam"),
)
CHILD = Parameter(name="momentum", kind=Kind.DOUBLE, sample="0.0")


def snake(text: str) -> str:
    """The Vertex form as the SDK's snake_case spells it."""
    for name in (
        "studySpec", "metricId", "parameterId", "doubleValueSpec", "integerValueSpec", "discreteValueSpec",
        "categoricalValueSpec", "conditionalParameterSpecs", "parentCategoricalValues", "parameterSpec:", "minValue",
        "maxValue", "trialJobSpec", "workerPoolSpecs", "replicaCount", "containerSpec", "imageUri",
        "restartJobOnWorkerRestart",
    ):  # fmt: skip
        text = text.replace(
            name, "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        )
    return text


@pytest.mark.parametrize(
    ("text", "children"),
    [(OWN, (CHILD,)), (VERTEX, (CHILD,)), (snake(VERTEX), (CHILD,)), (LEGACY, ())],
    ids=["own", "camelCase", "snake_case", "legacy"],
)
def test_every_dialect_asks_the_same_of_the_program(
    text: str, children: tuple[Parameter, ...], tmp_path: Path
) -> None:
    path = tmp_path / "request.yaml"
    path.write_text(text)
    request = request_in(path)
    assert request.is_tuning
    assert request.metrics == ("accuracy",)
    assert request.parameters == PARAMETERS + children
    assert request.args == ("--epochs=1",)
    assert request.image == "r/p/i:1"
    assert (request.workers, request.parameter_servers, request.evaluators) == (2, 0, 1)


def test_what_only_some_dialects_say_is_read_from_them(tmp_path: Path) -> None:
    found = {}
    for name, text in (("own", OWN), ("vertex", VERTEX), ("legacy", LEGACY)):
        (tmp_path / name).write_text(text)
        found[name] = request_in(tmp_path / name)
    assert found["own"].env == found["vertex"].env == {"A": "1", "B": "3"}
    assert found["own"].says_master
    assert found["legacy"].says_master
    assert not found["vertex"].says_master
    assert found["own"].restarts_together
    assert found["vertex"].restarts_together
    assert found["legacy"].job_dir == "gs://b/o"


def test_a_legacy_study_without_a_tag_has_the_default_one(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("trainingInput: {hyperparameters: {goal: MAXIMIZE, params: []}}")
    assert request_in(path).metrics == ("training/hptuning/metric",)


def test_a_custom_job_is_no_study(tmp_path: Path) -> None:
    path = tmp_path / "job.json"
    spec = {"imageUri": "i", "command": ["python", "train.py"]}
    path.write_text(
        json.dumps({"jobSpec": {"workerPoolSpecs": [{"replicaCount": 1, "containerSpec": spec}]}})
    )
    request = request_in(path)
    assert not request.is_tuning
    assert request.command == ("python", "train.py")


@pytest.mark.parametrize(
    "path", sorted((ROOT / "schemas" / "examples" / "valid").glob("training_request.*")), ids=str
)
def test_every_example_of_a_request_is_understood(path: Path) -> None:
    assert request_in(path).path == str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "holds list, a request is a mapping"),
        ("a: [", "is neither JSON nor YAML"),
        (
            "studySpec: {parameters: [{parameterId: a}]}\ntrialJobSpec: {}",
            "parameter 'a' has no value spec",
        ),
    ],
)
def test_what_is_no_request_is_refused_in_plain_words(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "request.yaml"
    path.write_text(text)
    with pytest.raises(Unusable) as refused:
        request_in(path)
    assert words in str(refused.value)


def test_a_missing_request_is_refused() -> None:
    with pytest.raises(Unusable, match="cannot be read"):
        request_in(Path("nowhere.yaml"))


DOCKERFILE = """
FROM tensorflow/tensorflow:2.15.0 AS builder
ENV TF_USE_LEGACY_KERAS=0
FROM us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest
ENV TF_USE_LEGACY_KERAS=1 \\
    NAME="two words"
ENV OLD style of it
ENTRYPOINT ["python", "-m", "trainer.train"]
"""


def test_a_dockerfile_tells_variables_version_and_module_of_its_last_stage(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    found = surroundings_of(tmp_path)
    assert found.variables == {"TF_USE_LEGACY_KERAS": "1", "NAME": "two words", "OLD": "style of it"}
    assert (found.tensorflow, found.has_keras_2) == ((2, 17), False)
    assert found.command == ("python", "-m", "trainer.train")
    (tmp_path / "requirements.txt").write_text("numpy\ntensorflow==2.15.1\n")
    assert surroundings_of(tmp_path).has_keras_2


def test_a_tree_without_either_tells_nothing(tmp_path: Path) -> None:
    assert surroundings_of(tmp_path) == Surroundings()


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("us-docker.pkg.dev/vertex-ai/training/tf-gpu.2-11.py310:latest", (2, 11)),
        ("us-docker.pkg.dev/deeplearning-platform-release/gcr.io/tf2-cpu.2-17.py310", (2, 17)),
        ("tensorflow/tensorflow:2.14.0-gpu", (2, 14)),
        ("us-docker.pkg.dev/p/r/mine:2.14", None),
    ],
)
def test_an_images_name_may_state_its_tensorflow(image: str, version: tuple[int, int] | None) -> None:
    assert tensorflow_of(image) == version


def test_without_pyyaml_a_yaml_request_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "request.yaml").write_text(OWN)
    (tmp_path / "yaml.py").write_text("raise ImportError('not here')")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "trainmaster",
            "inspect",
            "trainer",
            "--request",
            str(tmp_path / "request.yaml"),
        ],
        cwd=ROOT,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "PyYAML, which reads YAML, is not installed here" in done.stderr


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("trainingInput: 5", ["$.trainingInput"]),
        ("workerPoolSpecs: [null]", ["$.workerPoolSpecs[0]"]),
        ("{workerPoolSpecs: 7, studySpec: [1]}", ["$.workerPoolSpecs", "$.studySpec"]),
        ("{model_name: m, args: 7, cluster: {chief: [1]}}", ["$.args", "$.cluster.chief"]),
        ("{model_name: m, tuning: {metrics: [x]}}", ["$.tuning.metrics[0]"]),
    ],
)
def test_parts_of_another_kind_than_is_read_there_are_refused_whole(
    text: str, paths: list[str], tmp_path: Path
) -> None:
    (tmp_path / "request.yaml").write_text(text)
    with pytest.raises(Unusable) as caught:
        request_in(tmp_path / "request.yaml")
    *faults, way_out = caught.value.faults
    assert [fault.partition(": ")[2].partition(":")[0] for fault in faults] == paths
    assert "trainmaster convert" in way_out


def test_names_that_the_user_chose_are_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "request.yaml").write_text("{model_name: m, image: i, env: {args: x}, labels: {metrics: y}}")
    assert request_in(tmp_path / "request.yaml").env == {"args": "x"}


def test_a_module_that_is_not_in_the_tree_is_told(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "other.py").write_text("print(1)\n")
    request = "{trainingInput: {pythonModule: trainer9.task, packageUris: [gs://b/p.tar.gz]}}"
    (tmp_path / "request.yaml").write_text(request)
    command = [sys.executable, "-m", "trainmaster", "inspect", "--request", "request.yaml", "tree"]
    done = subprocess.run(
        command, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert "'trainer9.task' runs: it is not in tree" in " ".join(done.stdout.split())
