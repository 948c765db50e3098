"""`${run_id}` and `${trial}` are filled when the job is built; what has no value where it stands is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.roles import OTHER, TUNING, accepted, request, submitted, told
from tests.core.shipped import NAMES
from trainmaster.orchestrator.core.names import LABEL_MAX_CHARS, run_id_of_key
from trainmaster.orchestrator.core.requests.checks.programs import ARGS_MOST_CHARS
from trainmaster.orchestrator.core.requests.placeholders import (
    literal,
    request_with_deployment,
    text_with_values,
    without_deployment,
)

RUN_ID = "m-20260301t120000-0123456789"
CHAMPION = {"metric": "accuracy", "goal": "maximize"}
EVERYWHERE: dict[str, Any] = {"output_prefixes": ("gs://elsewhere",)}


def args_of(document: dict[str, Any]) -> list[str]:
    body: Any = submitted(document).body
    found: list[str] = body["jobSpec"]["workerPoolSpecs"][0]["containerSpec"]["args"]
    return found


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("--job-dir=gs://b/${run_id}/out", "--job-dir=gs://b/run-1/out"),
        ("${run_id}${run_id}", "run-1run-1"),
        ("$${run_id}", "${run_id}"),
        ("echo $${HOME} $HOME $(HOME) $$", "echo ${HOME} $HOME $(HOME) $$"),
        ("$$${run_id}", "$${run_id}"),
    ],
)
def test_arguments_are_given_to_the_program_with_the_runs_id(text: str, becomes: str) -> None:
    assert args_of(request(args=[text])) == [becomes]


def test_every_role_and_every_submission_of_a_run_has_the_same_values() -> None:
    document = request(cluster={"chief": {"machine": "n1-standard-4", "args": ["${run_id}"]}})
    assert args_of(document) == args_of(document) == ["run-1"]
    assert accepted(document).document["cluster"]["chief"]["args"] == ["${run_id}"]


def test_a_file_of_googles_tools_may_not_write_inside_another_runs_directory() -> None:
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": OTHER}}
    output = {"outputUriPrefix": f"gs://models/m/{RUN_ID}/model"}
    faults = told({"displayName": "m", "workerPoolSpecs": [pool], "baseOutputDirectory": output})
    assert set(faults) == {"$.baseOutputDirectory.outputUriPrefix"}
    assert "it is inside another run's directory" in str(*faults.values())


@given(text=st.text(st.sampled_from("${}ab"), max_size=12))
def test_a_literal_text_comes_out_as_it_was(text: str) -> None:
    assert text_with_values(str(literal(text)), run_id="run-1", a="never") == text


def test_a_file_of_googles_tools_has_no_placeholders() -> None:
    words = ["${run_id}", "${HOME}", "$${HOME}", "${project}"]
    container = {"imageUri": OTHER, "args": words}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": container}
    assert args_of({"displayName": "m", "workerPoolSpecs": [pool]}) == words


@pytest.mark.parametrize(
    ("changes", "path", "problem"),
    [
        ({"args": ["a", "--d=${runid}"]}, "$.args[1]", "unknown placeholder; found '${runid}'; allowed: ${run_id}, ${project}, ${region}, ${inbox_bucket}, ${models_bucket}; did you mean 'run_id'?"),
        ({"args": ["gs://${projct}-data"]}, "$.args[0]", "did you mean 'project'?"),
        ({"args": ["${HOME}"]}, "$.args[0]", "write $${ for a literal ${"),
        ({"args": ["${run_id"]}, "$.args[0]", "the placeholder is not closed"),
        ({"args": ["${run_id:-x}"]}, "$.args[0]", "unknown placeholder"),
        ({"args": ["${trial}"]}, "$.args[0]", "a run without a tuning has no trials"),
        ({"args": ["${trial}"], "tuning": TUNING}, "$.args[0]", "$(CLOUD_ML_TRIAL_ID) expands to it"),
        ({"model_uri": "gs://models/m/${trial}"}, "$.model_uri", "a run without a tuning has no trials"),
        ({"model_uri": "gs://models/m/${runid}"}, "$.model_uri", "did you mean 'run_id'?"),
        ({"model_uri": "gs://models/m/$${run_id}"}, "$.model_uri", "gs://BUCKET/PATH"),
        ({"model_uri": "gs://models"}, "$.model_uri", "gs://BUCKET/PATH"),
        ({"model_uri": "gs://models/m", "tuning": TUNING}, "$.model_uri", "write gs://models/m/${trial}"),
        ({"model_uri": f"gs://models/m/{RUN_ID}/model"}, "$.model_uri", "it is inside another run's directory"),
        ({"model_uri": f"gs://models/{run_id_of_key('a', 'b')}/x"}, "$.model_uri", "it is inside another run's directory"),
        ({"output": {"prefix_uri": f"gs://models/m/{RUN_ID}"}}, "$.output.prefix_uri", "it is inside another run's directory"),
        ({"output": {"prefix_uri": f"gs://models/m/{RUN_ID}/3/model/"}}, "$.output.prefix_uri", "name the directory above it"),
        ({"model_uri": "gs://elsewhere/m"}, "$.model_uri", "the policy does not allow it; found 'gs://elsewhere/m'; allowed: gs://models"),
        ({"model_uri": "gs://models-of-others/m"}, "$.model_uri", "the policy does not allow it"),
        ({"model_uri": "gs://models/../ledger/m"}, "$.model_uri", "the policy does not allow it"),
    ],
)  # fmt: skip
def test_placeholders_without_a_value_are_refused(changes: dict[str, Any], path: str, problem: str) -> None:
    faults = told(request(**changes))
    assert set(faults) == {path}
    assert problem in str(faults[path])


@pytest.mark.parametrize(
    ("changes", "policy", "uri"),
    [
        ({"model_uri": "gs://models/m/${run_id}/export/"}, {}, "gs://models/m/run-1/export"),
        ({"model_uri": "gs://models/fixed", "champion": CHAMPION}, {}, "gs://models/fixed"),
        ({"model_uri": "gs://models/fixed/model.keras"}, {"output_prefixes": ()}, "gs://models/fixed/model.keras"),
        ({"model_uri": "gs://elsewhere/m"}, EVERYWHERE, "gs://elsewhere/m"),
        ({"model_uri": "gs://models/${trial}", "tuning": TUNING}, {}, "gs://models/${trial}"),
        ({"model_uri": "gs://models/${run_id}/${trial}", "tuning": TUNING, "champion": CHAMPION}, {}, "gs://models/run-1/${trial}"),
    ],
)  # fmt: skip
def test_an_allowed_model_uri_has_the_runs_id(
    changes: dict[str, Any], policy: dict[str, Any], uri: str
) -> None:
    assert accepted(request(**changes), **policy).spec.model_uri_of("run-1") == uri


def test_arguments_are_measured_as_the_program_is_given_them() -> None:
    longest = "${run_id}" * (ARGS_MOST_CHARS // LABEL_MAX_CHARS)
    assert len(args_of(request(args=[longest]))) == 1
    (fault,) = told(request(args=[longest, "${run_id}"])).values()
    assert fault.problem == "the arguments are too long"


def test_the_deployments_placeholders_are_filled_wherever_a_string_may_stand() -> None:
    document = request(
        image="${region}-docker.pkg.dev/${project}/trainmaster/trainer",
        args=["--data=gs://${project}-data/a", "$${project}", "gs://${models_bucket}/${run_id}"],
        env={"FROM": "gs://${inbox_bucket}/x", "SHELL": "$${project} ${HOME}"},
        labels={"at": "${region}"},
        model_uri="gs://${models_bucket}/m/${run_id}",
    )
    spec: Any = accepted(document).document
    assert spec["image"] == "us-central1-docker.pkg.dev/my-project/trainmaster/trainer"
    assert spec["args"] == ["--data=gs://my-project-data/a", "$${project}", "gs://models/${run_id}"]
    assert spec["env"] == {"FROM": "gs://inbox/x", "SHELL": "${project} ${HOME}"}
    assert spec["labels"] == {"at": "us-central1"}
    assert spec["model_uri"] == "gs://models/m/${run_id}"


@given(text=st.text(st.sampled_from("${}ab"), max_size=4).map(lambda text: text.replace("a", "${project}")))
def test_a_text_written_without_placeholders_comes_out_as_it_was(text: str) -> None:
    assert request_with_deployment({"env": {"A": without_deployment(text)}}, NAMES) == {"env": {"A": text}}
