"""Arguments and variables that reach the job otherwise than they were meant are warned of."""

from typing import Any

import pytest

from tests.core.roles import MACHINE, OTHER, PACKAGE, accepted, cluster, request
from tests.core.vertex_files import IMAGE, sound
from trainmaster.orchestrator.core.requests.checks.programs import MAX_WARNED

TEMPLATES = [
    ("gs://$BUCKET/train", "$BUCKET"),
    ("$bucket", "$bucket"),
    ("$_REGION", "$_REGION"),
    ("--day={{ ds }}", "{{ ds }}"),
    ("{{ .Values.image }}", "{{ .Values.image }}"),
    ("{% if x %}", "{% if x %}"),
    ("gs://<your-bucket>/train", "<your-bucket>"),
    ("<BUCKET_NAME>", "<BUCKET_NAME>"),
    ("<insert path here>", "<insert path here>"),
    ("%USERPROFILE%\\data", "%USERPROFILE%"),
    ("--project=YOUR_PROJECT_ID", "YOUR_PROJECT_ID"),
    ("gs://your-bucket-name/x", "your-bucket-name"),
]
MEANT = [
    "plain", "^a$", "cost: 5$", "$5", "$.loss", "$$HOME", "$(AIP_MODEL_DIR)", "{epoch:02d}", "%Y%m%d", "100%", "a%20b%20c",
    "<pad>", "<UNK>", "<|im_start|>", "a < b > c", "{{}}", '{"a": {"b": 1}}', "yours", "MY_BUCKET", "${run_id}",
]  # fmt: skip


def warned(**changes: Any) -> dict[str, str]:
    """The text of each warning by its path."""
    return {found.path: str(found) for found in accepted(request(**changes)).warnings}


@pytest.mark.parametrize(("text", "template"), TEMPLATES)
def test_a_template_that_was_not_filled_in_is_warned_of(text: str, template: str) -> None:
    in_env = {"X": text}
    found = warned(args=["--a", text], env=in_env, command=["python", text])
    problem = f"{template} looks like a template that was not filled in"
    assert found.keys() == {"$.args[1]", "$.env.X", "$.command[1]"}
    assert [problem in each for each in found.values()] == [True] * 3


@pytest.mark.parametrize("text", MEANT)
def test_other_texts_are_not(text: str) -> None:
    assert warned(args=[text], env={"X": text}) == {}


def test_a_variable_in_braces_is_a_template_wherever_it_is_no_placeholder() -> None:
    assert warned(env={"X": "gs://${BUCKET}/a"}).keys() == {"$.env.X"}
    assert warned(env={"X": "${bucket}"}).keys() == {"$.env.X"}
    assert warned(args=["gs://$${BUCKET}/a"]).keys() == {"$.args[0]"}
    assert warned(args=["$${oc.env:HOME}", "$${model.size}"]) == {}


@pytest.mark.parametrize(
    "program",
    [
        {"command": ["bash", "-c"], "args": ["train --data=gs://$BUCKET && echo $(date)"]},
        {"command": ["/bin/sh", "-ec", "python a.py $X"]},
        {"command": ["/usr/bin/env", "bash", "-euo", "pipefail", "-c"], "args": ["echo $X"]},
        {"args": ["sh", "-lc", "exec python a.py $X"]},
    ],
)
def test_a_shell_fills_them_in(program: dict[str, Any]) -> None:
    assert warned(**program, env={"URI": "gs://$BUCKET"}) == {}


@pytest.mark.parametrize("command", [["bash", "run.sh"], ["python", "-c"], ["python"]])
def test_a_shell_that_runs_a_file_does_not(command: list[str]) -> None:
    assert warned(command=command, args=["$X"]).keys() == {"$.args[0]"}


def test_each_role_is_looked_at_and_common_words_once() -> None:
    own = {**MACHINE, "count": 1, "image": OTHER, "args": ["$A"], "env": {"B": "{{ b }}"}}
    roles = cluster(workers={**MACHINE, "count": 2}, evaluators=own)
    found = accepted(request(args=["$X"], cluster=roles)).warnings
    assert [fault.path for fault in found] == [
        "$.args[0]",
        "$.cluster.evaluators.args[0]",
        "$.cluster.evaluators.env.B",
    ]
    packaged = request(image=None, python_package=PACKAGE, args=["<my-bucket>"])
    assert [fault.path for fault in accepted(packaged).warnings] == ["$.args[0]"]


def test_a_reference_to_a_later_or_unknown_variable_stays_text() -> None:
    env = {
        "EARLY": "$(ROOT)/a",
        "ROOT": "/gcs/b",
        "LATE": "$(ROOT)/c/$(EARLY)",
        "ODD": "$(NOPE)",
        "OWN": "$(AIP_MODEL_DIR)",
    }
    found = warned(env=env, args=["$(ROOT)", "$(CLOUD_ML_TRIAL_ID)", "$(OTHER)", "$$(OTHER)"])
    assert found.keys() == {"$.env.EARLY", "$.env.ODD", "$.args[2]"}
    assert "$(ROOT) stays this text: no variable of this name comes before it" in found["$.env.EARLY"]
    assert "set ROOT before it" in found["$.env.EARLY"]
    assert "$(OTHER) stays this text: the role has no variable of this name" in found["$.args[2]"]


@pytest.mark.parametrize(
    ("value", "words"), [("the customer's choice", "an apostrophe in a variable"), ("", "an empty variable")]
)
def test_values_that_the_service_is_reported_to_refuse_are_warned_of(value: str, words: str) -> None:
    assert f"Vertex AI is reported to refuse {words}" in warned(env={"NOTE": value})["$.env.NOTE"]


def test_a_file_of_googles_tools_is_warned_of_at_its_own_places() -> None:
    container = {
        "imageUri": IMAGE,
        "args": ["--data=gs://${BUCKET}/x"],
        "env": [{"name": "A", "value": "$(B)"}],
    }
    pools = [{"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}]
    paths = [fault.path for fault in sound({"workerPoolSpecs": pools, "displayName": "m"}).warnings]
    here = "$.workerPoolSpecs[0].containerSpec"
    assert paths == [f"{here}.args[0]", f"{here}.env[0].name"]


def test_a_flood_of_templates_is_cut() -> None:
    found = accepted(request(args=["$X"] * 5000)).warnings
    assert len(found) == MAX_WARNED
