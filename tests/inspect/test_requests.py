"""Demands on a program are read from every dialect, and from the Dockerfile beside the source."""

from pathlib import Path

import pytest

from tests.command import trainmaster
from trainmaster.inspect.finding import UnusableProgram
from trainmaster.inspect.request import ProgramParameter, read_request
from trainmaster.inspect.start import surroundings_of
from trainmaster.orchestrator.core.requests.spec import ParameterType

ROOT = Path(__file__).resolve().parents[2]

OWN = """
model_name: m
image: us-central1-docker.pkg.dev/p/r/i:1
args: [--epochs=1]
env: {A: "1", B: "2"}
cluster:
  chief: {machine: n1-standard-4, env: {B: "3"}}
  workers: {count: 2, machine: n1-standard-4}
  parameter_servers: {count: 1, machine: n1-standard-4, image: "us-central1-docker.pkg.dev/p/r/other:1"}
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
  max_trials: 2
"""

LEGACY = """
trainingInput:
  scaleTier: CUSTOM
  region: europe-west4
  masterType: n1-standard-4
  masterConfig: {imageUri: "us-central1-docker.pkg.dev/p/r/i:1"}
  args: [--epochs=1]
  workerType: n1-standard-4
  workerCount: 2
  parameterServerType: n1-standard-4
  parameterServerCount: 1
  parameterServerConfig: {imageUri: "us-central1-docker.pkg.dev/p/r/other:1"}
  evaluatorType: n1-standard-4
  evaluatorCount: 1
  useChiefInTfConfig: false
  jobDir: gs://bucket/out
  hyperparameters:
    goal: MAXIMIZE
    hyperparameterMetricTag: accuracy
    params:
      - {parameterName: learningRate, type: DOUBLE, minValue: 0.5, maxValue: 1}
      - {parameterName: units, type: INTEGER, minValue: 2, maxValue: 4}
      - {parameterName: batch, type: DISCRETE, discreteValues: [64, 128]}
      - {parameterName: optimizer, type: CATEGORICAL, categoricalValues: [adam, sgd]}
"""
JOB_DIR = ("--job-dir", "gs://bucket/out")

PARAMETERS = (
    ProgramParameter(name="learningRate", type=ParameterType.DOUBLE, samples=("0.5", "0.75")),
    ProgramParameter(name="units", type=ParameterType.INTEGER, samples=("2", "3")),
    ProgramParameter(name="batch", type=ParameterType.DISCRETE, samples=("64.0", "128.0")),
    ProgramParameter(name="optimizer", type=ParameterType.CATEGORICAL, samples=("adam", "sgd")),
)
CHILD = ProgramParameter(name="momentum", type=ParameterType.DOUBLE, samples=("0.0", "0.5"))


@pytest.mark.parametrize(("text", "children"), [(OWN, (CHILD,)), (LEGACY, ())], ids=["own", "legacy"])
def test_every_dialect_asks_the_same_of_the_program(
    text: str, children: tuple[ProgramParameter, ...], tmp_path: Path
) -> None:
    path = tmp_path / "request.yaml"
    path.write_text(text)
    request = read_request(path)
    assert request.metrics == ("accuracy",)
    assert request.parameters == PARAMETERS + children
    assert request.program.args == ("--epochs=1", *(JOB_DIR if text == LEGACY else ()))
    assert request.program.image == "us-central1-docker.pkg.dev/p/r/i:1"
    assert request.workers == 2
    assert request.says_master


@pytest.mark.parametrize(
    "path",
    [
        *sorted((ROOT / "schemas" / "examples" / "valid").glob("training_request.*")),
        *sorted((ROOT / "examples" / "vertex").glob("*.yaml")),
    ],
    ids=lambda path: path.name,
)
def test_every_example_of_a_request_is_understood(path: Path) -> None:
    assert read_request(path).path == str(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1, 2]", "$: a request must be a mapping; found [1, 2]"),
        ("a: [", "$: broken YAML"),
        (
            "studySpec: {parameters: [{parameterId: a}]}\ntrialJobSpec: {}",
            "$.studySpec.parameters[0]: expected exactly one of doubleValueSpec",
        ),
    ],
)
def test_a_document_that_is_not_a_request_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "request.yaml"
    path.write_text(text)
    with pytest.raises(UnusableProgram) as refused:
        read_request(path)
    assert words in str(refused.value)


DOCKERFILE = """
FROM tensorflow/tensorflow:2.15.0 AS builder
ENV TF_USE_LEGACY_KERAS=0
ENTRYPOINT ["python", "other.py"]
FROM us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest
ENV TF_USE_LEGACY_KERAS=1 \\
    NAME="two words"
ENV OLD style of it
ENTRYPOINT ["python", "-m", "trainer.train"]
CMD --epochs=1 --rate=2
"""


def test_a_dockerfiles_last_stage_sets_variables_and_starts_the_program(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(DOCKERFILE)
    found = surroundings_of(tmp_path)
    assert found.variables == {"TF_USE_LEGACY_KERAS": "1", "NAME": "two words", "OLD": "style of it"}
    assert found.entrypoint == ("python", "-m", "trainer.train")
    assert found.cmd == ("/bin/sh", "-c", "--epochs=1 --rate=2")


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
def test_every_fault_of_a_request_is_reported_at_once(text: str, paths: list[str], tmp_path: Path) -> None:
    (tmp_path / "request.yaml").write_text(text)
    with pytest.raises(UnusableProgram) as caught:
        read_request(tmp_path / "request.yaml")
    found = {fault.partition(": ")[2].partition(":")[0] for fault in caught.value.faults}
    assert found >= set(paths)


def test_a_module_that_is_not_in_the_tree_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "other.py").write_text("print(1)\n")
    request = "trainingInput: {pythonModule: trainer9.task, packageUris: [gs://bucket/p-1.tar.gz], runtimeVersion: '2.11'}"
    (tmp_path / "request.yaml").write_text(request)
    done = trainmaster("inspect", "--request", "request.yaml", "tree", cwd=tmp_path, environment={})
    assert (done.status, "There is no module 'trainer9.task' in " in done.err) == (2, True)
