"""A request for a packed script: the image that runs it, the command of its job, and what is refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.roles import (
    MACHINE,
    ONE,
    OTHER,
    PACKAGE,
    TRAINER,
    TUNING,
    accepted,
    cluster,
    request,
    submitted,
    told,
)
from trainmaster.orchestrator.core.requests.script import CONTINUER, RUNNER

SHA = "ab" * 32
ARCHIVE = f"gs://my-project-data/scripts/{SHA}.tar.gz"
SCRIPT = {"file": "src/train.py", "archive": ARCHIVE}


def of_script(**changes: Any) -> dict[str, Any]:
    return request(**{"image": None, "script": SCRIPT, **changes})


def pools(document: dict[str, Any]) -> Any:
    body: Any = submitted(document).body
    return (body["jobSpec"] if "jobSpec" in body else body["trialJobSpec"])["workerPoolSpecs"]


def test_every_replica_unpacks_the_archive_and_becomes_the_script() -> None:
    workers, document = {**ONE, "count": 2}, {"args": ["--run=${run_id}"], "env": {"A": "1"}}
    chief, worker = pools(of_script(cluster=cluster(workers=workers), **document))
    assert chief["containerSpec"] == {
        "imageUri": TRAINER,
        "command": ["python3", "-c", RUNNER, ARCHIVE, "none", "src/train.py"],
        "args": ["--run=run-1"],
        "env": [{"name": "A", "value": "1"}, {"name": "TRAINMASTER_SCRIPT", "value": ARCHIVE}],
    }
    assert worker["containerSpec"] == chief["containerSpec"]


def test_a_module_is_run_by_its_name_and_under_its_launcher() -> None:
    script = {
        "module": "digits.train",
        "archive": ARCHIVE,
        "root": ".",
        "extras": ["gpu"],
        "groups": ["train"],
    }
    (chief,) = pools(of_script(script=script))
    assert chief["containerSpec"]["command"][3:] == [ARCHIVE, "none", "-m", "digits.train"]
    (chief,) = pools(of_script(script={**script, "launcher": "torchrun"}))
    assert chief["containerSpec"]["command"][3:] == [ARCHIVE, "torchrun", "-m", "digits.train"]


def test_the_runner_has_no_text_that_the_service_would_replace() -> None:
    """Vertex AI, like Kubernetes, may replace `$(NAME)` and `$$` in a command."""
    compile(RUNNER, "runner", "exec")
    assert "$" not in RUNNER


def test_the_canonical_request_names_the_image_that_the_policy_chose() -> None:
    assert accepted(of_script()).document["image"] == TRAINER
    assert accepted(of_script(image=OTHER)).document["image"] == OTHER
    assert accepted(of_script(), script_image=OTHER).document["image"] == OTHER


def test_a_policy_without_an_image_for_scripts_needs_one_in_the_request() -> None:
    (fault,) = told(of_script(), script_image=None).values()
    assert (fault.path, fault.problem) == (
        "$.image",
        "missing: the script needs an image with Python, and no policy names one as script_image",
    )


def test_a_role_with_its_own_image_does_not_run_the_script() -> None:
    _, worker = pools(of_script(cluster=cluster(workers={**ONE, "image": OTHER})))
    assert worker["containerSpec"] == {"imageUri": OTHER}


def test_a_tuning_may_vary_any_flag_of_a_script_also_in_the_trainers_image() -> None:
    parameters = {"anything": {"type": "double", "min": 0, "max": 1}}
    (chief,) = pools(of_script(tuning={**TUNING, "parameters": parameters}, args=["--strategy=mine"]))
    assert chief["containerSpec"]["imageUri"] == TRAINER


@pytest.mark.parametrize(
    ("changes", "path", "said"),
    [
        ({"script": {"file": "train.py"}}, "$.script.archive", "missing: the script was not uploaded"),
        (
            {"script": {**SCRIPT, "module": "m"}},
            "$.script.module",
            "a script is a file or a module, not both",
        ),
        ({"script": {**SCRIPT, "launcher": "torch"}}, "$.script.launcher", "not an allowed value"),
        ({"script": {**SCRIPT, "extras": ["a b"]}}, "$.script.extras[0]", "not in the expected format"),
        ({"script": {"module": "a-b", "archive": ARCHIVE}}, "$.script.module", "not in the expected format"),
        ({"script": {"archive": ARCHIVE}}, "$.script.file", "missing"),
        ({"script": "train.py"}, "$.script", "expected a mapping"),
        ({"script": {**SCRIPT, "file": "../train.py"}}, "$.script.file", "without white space and '..'"),
        ({"script": {**SCRIPT, "file": "/train.py"}}, "$.script.file", "ending in .py"),
        ({"script": {**SCRIPT, "file": "-m.py"}}, "$.script.file", "ending in .py"),
        ({"script": {**SCRIPT, "file": "train.sh"}}, "$.script.file", "ending in .py"),
        ({"script": {**SCRIPT, "file": "a/./train.py"}}, "$.script.file", "ending in .py"),
        (
            {"script": {**SCRIPT, "archive": "gs://my-project-data/scripts/mine.tar.gz"}},
            "$.script.archive",
            "`trainmaster submit` packs the folder",
        ),
        (
            {"script": {**SCRIPT, "archive": f"gs://my-project-data/{SHA}.tar.gz"}},
            "$.script.archive",
            "allowed: gs://my-project-data/scripts",
        ),
        (
            {"script": {**SCRIPT, "archive": f"gs://my-project-data/scripts/../{SHA}.tar.gz"}},
            "$.script.archive",
            "the policy does not allow it",
        ),
        (
            {"script": {**SCRIPT, "archive": f"gs://my-project-data/scripts-of-others/{SHA}.tar.gz"}},
            "$.script.archive",
            "the policy does not allow it",
        ),
        ({"command": ["bash"]}, "$.command", "Python runs the script, but chief would run a command"),
        (
            {"cluster": cluster(workers={**ONE, "command": ["bash"]})},
            "$.cluster.workers.command",
            "name the image it belongs to as cluster.workers.image",
        ),
        ({"python_package": PACKAGE}, "$.script", "nothing: the python_package has"),
        ({"cluster": {"chief": {**MACHINE, "image": OTHER}}}, "$.script", "no replica would use this"),
        ({"env": {"TRAINMASTER_SCRIPT": ARCHIVE}}, "$.env.TRAINMASTER_SCRIPT", "this service sets it"),
        ({"env": {f"A{number}": "" for number in range(100)}}, "$.env", "too many environment variables"),
        ({"fallbacks": [{"script": SCRIPT}]}, "$.fallbacks[0]", "script"),
        ({"image": "docker.io/library/python:3.12"}, "$.image", "the policy does not allow it"),
    ],
)
def test_a_script_that_could_not_run_is_refused(changes: dict[str, Any], path: str, said: str) -> None:
    faults = told(of_script(**changes))
    found = next(fault for at, fault in faults.items() if at.startswith(path))
    assert said in str(found)


@pytest.mark.parametrize("script", [{"fil": "mine.py"}, {}, {"file": "mine.py", "archiv": ARCHIVE}])
def test_a_script_with_a_wrong_key_is_not_reported_as_not_uploaded(script: dict[str, str]) -> None:
    faults = told(of_script(script=script))
    assert faults
    assert not any("was not uploaded" in str(fault) for fault in faults.values())


def test_an_older_policy_allows_no_script() -> None:
    faults = told(of_script(image=OTHER), script_prefixes=())
    assert "allowed: none" in str(faults["$.script.archive"])


def run_continuer(folder: Path, earlier: str, **task: Any) -> None:
    environment = {
        "TRAINMASTER_GCS_ROOT": str(folder),
        "AIP_CHECKPOINT_DIR": "gs://models/new/checkpoints/",
        "TRAINMASTER_CONTINUE_FROM": earlier,
        **({"CLUSTER_SPEC": json.dumps({"task": task})} if task else {}),
    }
    subprocess.run([sys.executable, "-c", CONTINUER], env=environment, check=True, timeout=60)


@pytest.mark.parametrize("task", [{}, {"type": "workerpool0", "index": 0}, {"type": "master", "index": "0"}])
def test_a_script_begins_with_the_checkpoints_of_the_earlier_run_only_once(
    tmp_path: Path, task: dict[str, Any]
) -> None:
    earlier = tmp_path / "models/old/checkpoints/epochs"
    earlier.mkdir(parents=True)
    (earlier / "3.json").write_text("3")
    run_continuer(tmp_path, "gs://models/old/checkpoints/", **task)
    copied = tmp_path / "models/new/checkpoints/epochs/3.json"
    assert copied.read_text() == "3"
    copied.write_text("4")  # the run saves its next one, and is started again
    run_continuer(tmp_path, "gs://models/old/checkpoints/", **task)
    run_continuer(tmp_path, "gs://models/old/checkpoints/", type="workerpool1", index=0)
    assert (copied.read_text(), (earlier / "3.json").read_text()) == ("4", "3")


def test_a_continued_run_names_the_earlier_checkpoints_to_every_replica() -> None:
    source = "gs://models/flowers/run-1/checkpoints/"
    for pool in pools(of_script(cluster=cluster(workers=ONE), continue_from=source, env={"A": "1"})):
        named = {each["name"]: each["value"] for each in pool["containerSpec"]["env"]}
        assert (named["TRAINMASTER_CONTINUE_FROM"], named["A"]) == (source, "1")


@pytest.mark.parametrize(
    "value", ["run-1", "gs://models", "gs://models/../x y", "gs://models/${run_id}/checkpoints", 5]
)
def test_what_is_no_directory_is_no_earlier_run(value: object) -> None:
    assert any("$.continue_from" in line for line in told(of_script(continue_from=value)))
