"""cloudbuild.yaml: Cloud Build accepts it, and each step gets the right arguments."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.image.cloud_build import GIVEN, ROOT, Worker, loaded, substituted, substitutions
from tests.judges.discovery import api

SHELL_TRACE = re.compile(r"set -\w*x|\bprintenv\b|\benv\b|/proc/self/environ|\bdeclare -x\b|\bexport -p\b")


@pytest.fixture
def build() -> dict[str, Any]:
    return loaded()


@pytest.fixture
def topology() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text())
    return found


def step(build: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in build["steps"] if each["id"] == name)
    return found


def command(build: dict[str, Any], name: str) -> str:
    return substituted(step(build, name)["args"][-1], substitutions(build))


def test_cloud_build_takes_every_line(build: dict[str, Any]) -> None:
    assert api("cloudbuild.v1").request_faults("POST", "/v1/projects/p/builds", build) == []
    assert build["timeout"] == "3600s"
    # Cloud Build rejects a custom account with the default logging.
    assert build["options"]["logging"] == "CLOUD_LOGGING_ONLY"
    assert build["artifacts"]["objects"]["paths"] == ["trainer-image.txt"]


def test_cloud_build_takes_the_release_and_gives_it_the_image_of_the_other_builds(
    build: dict[str, Any],
) -> None:
    release = yaml.safe_load((ROOT / "tools" / "cloudbuild-release.yaml").read_text())
    assert api("cloudbuild.v1").request_faults("POST", "/v1/projects/p/builds", release) == []
    assert {each["name"] for each in release["steps"]} == {build["substitutions"]["_PYTHON_IMAGE"]}
    assert release["serviceAccount"] == build["serviceAccount"]
    assert release["substitutions"].items() <= build["substitutions"].items()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(release["steps"][0]["args"]) <= targets


def test_every_variable_is_known_and_resolves_to_text_without_variables(build: dict[str, Any]) -> None:
    values = substitutions(build)
    assert not [value for value in values.values() if "$" in value]
    for each in build["steps"]:
        for text in (each["name"], *each["args"], *each.get("env", [])):
            substituted(text, values)
    for text in (*build["images"], *build["options"]["env"], build["artifacts"]["objects"]["location"]):
        assert "$" not in substituted(text, values)


def test_every_variable_of_the_file_is_declared_and_used(build: dict[str, Any]) -> None:
    # Cloud Build refuses a manual build otherwise.
    text = (ROOT / "cloudbuild.yaml").read_text().partition("\nsteps:")[2]
    steps, declared = text.partition("\nsubstitutions:")[::2]
    used = set(re.findall(r"\$\{?(_[A-Z0-9_]+)", steps + declared))
    assert used == set(build["substitutions"])
    assert all(re.fullmatch(r"_[A-Z0-9_]+", name) for name in build["substitutions"])


def test_nothing_is_pushed_or_deployed_before_the_tests_have_passed(build: dict[str, Any]) -> None:
    def before(name: str) -> set[str]:
        each = step(build, name)
        ids = [other["id"] for other in build["steps"]]
        waits = each.get("waitFor", ids[: ids.index(name)])
        return {one for wait in waits if wait != "-" for one in {wait, *before(wait)}}

    assert {"test", "build"} <= before("push")
    assert {"test", "stage", "build"} <= before("deploy-functions")
    # A pushed image fires rules, whose runs the functions submit.
    assert "deploy-functions" in before("push")
    assert before("publish-image") >= {"test", "push", "record-digest", "deploy-functions"}


def test_the_image_has_the_name_that_the_topology_gives_it(
    build: dict[str, Any], topology: dict[str, Any]
) -> None:
    values = substitutions(build)
    wanted = topology["images"]["trainer"].replace("${project}", GIVEN["PROJECT_ID"])
    wanted = wanted.replace("${region}", values["_REGION"]).replace("${prefix}", values["_PREFIX"])
    assert f"IMAGE={wanted}" in [substituted(text, values) for text in build["options"]["env"]]
    assert {substituted(text, values).rpartition(":")[0] for text in build["images"]} == {wanted}


def test_every_function_of_the_topology_gets_its_source(
    build: dict[str, Any], topology: dict[str, Any]
) -> None:
    assert build["substitutions"]["_FUNCTIONS"].split() == list(topology["functions"])
    assert "FUNCTIONS=${_FUNCTIONS}" in step(build, "deploy-functions")["env"]
    text = command(build, "deploy-functions")
    assert "--gen2" in text
    assert f"--source={step(build, 'stage')['args'][-1]}" in text
    assert "--trigger" not in text, "a function's trigger is defined in one place"
    assert "--set-env-vars" not in text


def test_it_runs_as_the_account_that_the_deployment_makes(build: dict[str, Any]) -> None:
    accounts = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "permissions.yaml").read_text())["accounts"]
    account = substituted(build["serviceAccount"], substitutions(build)).rpartition("/")[2]
    assert account == f"tm-build@{GIVEN['PROJECT_ID']}.iam.gserviceaccount.com"
    assert "build" in accounts


def test_the_images_event_goes_to_the_topic_that_rules_watch(
    build: dict[str, Any], topology: dict[str, Any]
) -> None:
    assert build["substitutions"]["_IMAGES_TOPIC"] == topology["topics"]["images"]


@pytest.mark.parametrize("message", ["true", "exit 1", "echo elsewhere.example/trainer@sha256:0a"])
def test_a_build_whose_image_has_no_digest_ends_without_announcing_an_image(
    build: dict[str, Any], tmp_path: Path, message: str
) -> None:
    values = substitutions(build)
    docker = tmp_path / "docker"
    docker.write_text(f"#!/bin/sh\n{message}\n")
    docker.chmod(0o755)
    worker = Worker(workspace=tmp_path, output=tmp_path, shims=tmp_path, values=values)
    with pytest.raises(subprocess.CalledProcessError):
        worker.run(build, "record-digest")
    docker.write_text(
        f"#!/bin/sh\necho {values['_REGION']}-docker.pkg.dev/my-project/trainmaster/trainer@sha256:0a\n"
    )
    worker.run(build, "record-digest")
    assert (tmp_path / "trainer-image.txt").read_text().endswith("/trainer@sha256:0a\n")


def test_no_step_is_given_a_secret_or_prints_its_surroundings(build: dict[str, Any]) -> None:
    assert "availableSecrets" not in build
    assert "secretEnv" not in build["options"]
    for each in build["steps"]:
        assert "secretEnv" not in each
        assert not any(SHELL_TRACE.search(word) for word in each["args"]), each["id"]
