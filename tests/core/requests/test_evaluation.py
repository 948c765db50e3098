"""The job that scores models: what it is given, what the policy refuses of it, and that its cost counts."""

from typing import Any

import pytest

from tests.core.roles import accepted, request, told
from trainmaster.orchestrator.core.deployment_names import evaluation_account
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy
from trainmaster.orchestrator.core.requests.evaluation import (
    evaluation_document,
    evaluation_output_uri,
    evaluation_submission,
)
from trainmaster.orchestrator.core.requests.script import RUNNER
from trainmaster.orchestrator.core.requests.submission import Target

ARCHIVE = f"gs://my-project-data/scripts/{'ab' * 32}.tar.gz"
SCRIPT = {"file": "score.py", "archive": ARCHIVE}
DATA = "gs://my-project-data/holdout.csv"
INPUTS = {
    "challenger": "gs://c/m/run-2/",
    "champion": "gs://c/m/run-1/",
    "champion_run": "run-1",
    "data": DATA,
}
TARGET = Target(
    project="p", region="r", models_bucket="m", service_account="tm-eval@p.iam.gserviceaccount.com"
)


def evaluated(**evaluate: Any) -> dict[str, Any]:
    terms = {"metric": "accuracy", "goal": "maximize", "evaluate": {"data": DATA, **evaluate}}
    return request(champion=terms, labels={"cost": "a"})


def test_the_job_gets_what_it_scores_in_variables_and_arguments_as_its_own_account() -> None:
    sound = accepted(
        evaluated(script=SCRIPT, args=["--run=${run_id}"]), evaluation=EvaluationPolicy(timeout_s=60)
    )
    document = evaluation_document(sound.document, None)
    assert document is not None
    output = "gs://c/_evaluations/m/run-2"
    submission = evaluation_submission("run-2", document, INPUTS, output, TARGET)
    body: Any = submission.body
    assert body["displayName"] == "run-2-evaluation"
    assert body["labels"]["trainmaster_step"] == "evaluation"
    assert (body["labels"]["trainmaster_run_id"], body["labels"]["cost"]) == ("run-2", "a")
    spec = body["jobSpec"]
    assert spec["serviceAccount"] == TARGET.service_account
    assert spec["baseOutputDirectory"]["outputUriPrefix"] == output
    assert spec["scheduling"]["timeout"] == "3600s"
    (pool,) = spec["workerPoolSpecs"]
    assert pool["machineSpec"] == {"machineType": "n1-standard-4"}
    container = pool["containerSpec"]
    assert container["imageUri"] == request()["image"]
    assert container["command"] == ["python3", "-c", RUNNER, ARCHIVE, "none", "score.py"]
    given = {
        "challenger": INPUTS["challenger"],
        "champion": INPUTS["champion"],
        "data": DATA,
        "output": output,
    }
    assert container["args"] == [*(f"--{name}={uri}" for name, uri in given.items()), "--run=run-2"]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "TRAINMASTER_CHALLENGER_URI": given["challenger"],
        "TRAINMASTER_CHAMPION_URI": given["champion"],
        "TRAINMASTER_EVALUATION_DATA_URI": DATA,
        "TRAINMASTER_EVALUATION_OUTPUT_URI": output,
        "TRAINMASTER_SCRIPT": ARCHIVE,
    }


@pytest.mark.parametrize(
    ("evaluate", "path", "problem"),
    [
        ({}, "script", "missing"),
        ({"script": SCRIPT, "args": ["--model=${trial}"]}, "args[0]", "trial"),
        ({"image": "docker.io/mine:1"}, "image", "the policy does not allow it"),
        ({"image": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-11:latest"}, "image", "unavailable since"),
        (
            {"script": {**SCRIPT, "archive": ARCHIVE.replace("my-project", "other")}},
            "script.archive",
            "policy",
        ),
        ({"script": {"file": "score.py"}}, "script.archive", "missing: the script was not uploaded"),
        ({"script": SCRIPT, "args": [f"--key=AIza{'a' * 35}"]}, "args[0]", "must not contain a secret"),
        ({"script": SCRIPT, "data": "/data"}, "data", "not in the expected format"),
        ({"script": SCRIPT, "metric": "x"}, "metric", "unknown key"),
    ],
)
def test_its_faults_are_those_of_any_program_at_their_places(
    evaluate: dict[str, Any], path: str, problem: str
) -> None:
    faults = told(evaluated(**evaluate))
    assert problem in faults[f"$.champion.evaluate.{path}"].problem, faults


def test_all_faults_of_request_and_evaluation_are_reported_at_once() -> None:
    document = evaluated(image="docker.io/mine:1", data="x") | {"image": "docker.io/other:1"}
    assert set(told(document)) == {"$.image", "$.champion.evaluate.image", "$.champion.evaluate.data"}


def test_a_machine_that_the_policy_lacks_is_named_at_the_evaluation() -> None:
    faults = told(evaluated(script=SCRIPT), evaluation=EvaluationPolicy(machine="a9-huge"))
    assert faults["$.champion.evaluate"].found == "'a9-huge'"


def test_what_the_metric_is_measured_on_is_said_once() -> None:
    document = evaluated(script=SCRIPT)
    document["champion"]["evaluation"] = "the holdout of May"
    assert set(told(document)) == {"$.champion.evaluation"}


@pytest.mark.parametrize(
    ("team", "account", "output"),
    [
        (None, "tm-eval@p.iam.gserviceaccount.com", "gs://c/_evaluations/m/run-1"),
        ("vision", "tm-eval-vision@p.iam.gserviceaccount.com", "gs://c/_evaluations/vision/m/run-1"),
    ],
)
def test_a_team_has_its_own_account_and_folder_for_numbers(
    team: str | None, account: str, output: str
) -> None:
    assert evaluation_account(team, "p") == account
    assert evaluation_output_uri("c", team, "m", "run-1") == output
