"""The requests and rules to copy are sound, and the trainer or their program takes their arguments."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template

import pytest
import yaml

from tests.core.parsed import sound_request
from tests.core.retraining_cases import BUCKETS, dropped
from tests.judges.jobs import job_faults
from tests.narrowing import instance_of
from trainer.task import command_from
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.retraining.rule import Rule

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
VERTEX = [EXAMPLES / "vertex" / name for name in ("custom-job.yaml", "hp-tuning-job.yaml")]
DEMO = {"project": "my-project", "region": "us-central1", "data_dir": "gs://my-project-datasets/tfds"}
V100 = {"type": "NVIDIA_TESLA_V100"}
MULTI_WORKER_REPLICA = {"machine": "n1-standard-8", "accelerator": {**V100, "count": 1}}
TUNED_REPLICA = {"machine": "n1-standard-4", "accelerator": {**V100, "count": 2}}
CODELABS: dict[str, dict[str, object]] = {
    "multi_worker": {"chief": MULTI_WORKER_REPLICA, "workers": {"count": 1, **MULTI_WORKER_REPLICA}},
    "tuning": {"chief": TUNED_REPLICA},
}
CODELAB_FLAGS: dict[str, dict[str, object]] = {
    "multi_worker": {"image_size": 300, "batch_size": 64, "epochs": 2, "weights": "imagenet"},
    "tuning": {"image_size": 150, "batch_size": 64, "epochs": 10},
}
CODELAB_TUNING = {
    "metrics": [{"id": "accuracy", "goal": "maximize"}],
    "parameters": {
        "learning_rate": {"type": "double", "min": 0.001, "max": 1, "scale": "log"},
        "momentum": {"type": "double", "min": 0, "max": 1, "scale": "linear"},
        "num_units": {"type": "discrete", "values": [64, 128, 512]},
    },
    "max_trials": 15,
    "parallel_trials": 3,
}


def tuned(request: Request) -> list[str]:
    """The flags of a trial, each parameter at one of its values."""
    parameters = request.document.get("tuning", {}).get("parameters", {})
    return [
        f"--{name}={each['values'][0] if 'values' in each else each['max']}"
        for name, each in parameters.items()
    ]


def arguments_of(text: str) -> Sequence[str]:
    """The program's arguments in a sound request or rule."""
    document = yaml.safe_load(text)
    if "when" in document:
        own = text.replace("my-project-inbox", BUCKETS.inbox)
        instance_of(Rule, dropped(own, name="rules/example.yaml"))
        arguments: list[str] = document["request"]["args"]
        return arguments
    request = sound_request(text, name="example")
    return [*request.spec.cluster.chief.program.args, *tuned(request)]


@pytest.mark.parametrize("path", [*sorted(EXAMPLES.glob("*.yaml")), *VERTEX], ids=lambda path: path.stem)
def test_the_example_is_sound_and_has_flags_that_the_trainer_takes(path: Path) -> None:
    command_from(arguments_of(Template(path.read_text()).safe_substitute(DEMO)))


@pytest.mark.parametrize(("path", "kind"), [*zip(VERTEX, JobKind, strict=True)])
def test_the_api_takes_the_example_for_gcloud(path: Path, kind: JobKind) -> None:
    assert job_faults(kind, yaml.safe_load(path.read_text()), spec_alone=kind is JobKind.CUSTOM) == []


def test_the_tuning_for_gcloud_is_that_of_our_own_example() -> None:
    ours, theirs = (
        sound_request((EXAMPLES / name).read_text()) for name in ("tuning.yaml", "vertex/hp-tuning-job.yaml")
    )
    assert theirs.spec == ours.spec


def flags_of(program: Path) -> dict[str, object]:
    """Each flag that the program adds to its parser, with its default if that is a constant."""
    calls = [node for node in ast.walk(ast.parse(program.read_text())) if isinstance(node, ast.Call)]
    added = [call for call in calls if getattr(call.func, "attr", "") == "add_argument"]
    return {
        ast.literal_eval(call.args[0]).removeprefix("--"): next(
            (
                word.value.value
                for word in call.keywords
                if word.arg == "default" and isinstance(word.value, ast.Constant)
            ),
            None,
        )
        for call in added
    }


@pytest.mark.parametrize("name", CODELABS)
def test_the_request_of_a_codelab_asks_for_what_the_codelab_asks_for(name: str) -> None:
    text = Template((EXAMPLES / "codelabs" / name / "request.yaml").read_text()).safe_substitute(DEMO)
    given = arguments_of(text)
    document = yaml.safe_load(text)
    assert document["cluster"] == CODELABS[name]
    assert document.get("tuning", {}) == (CODELAB_TUNING if name == "tuning" else {})
    flags = flags_of(EXAMPLES / "codelabs" / name / "trainer" / "task.py")
    assert {flag: flags[flag] for flag in CODELAB_FLAGS[name]} == CODELAB_FLAGS[name]
    assert {argument.removeprefix("--").partition("=")[0] for argument in given} <= flags.keys()


@pytest.mark.parametrize(
    ("title", "name"), [("Multi-worker training", "multi_worker"), ("Hyperparameter tuning", "tuning")]
)
def test_the_table_of_changes_quotes_the_codelabs_example(title: str, name: str) -> None:
    folder = EXAMPLES / "codelabs" / name
    written = "".join(
        (folder / path).read_text() for path in ("trainer/task.py", "request.yaml", "Dockerfile")
    )
    section = (
        (EXAMPLES / "codelabs" / "README.md").read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    )
    here = [line.split("|")[2] for line in section.splitlines() if line.startswith("|")]
    quoted = re.findall(r"`([^`]+)`", "".join(here))
    assert len(quoted) > 5
    assert [words for words in quoted if words not in written] == []
