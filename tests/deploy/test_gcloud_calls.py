"""Every call that gcloud makes for our commands is in trainmaster/deploy/permissions.yaml, and its caller may make it."""

import ast
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.cloud import PROJECT, REGION, ROOT, Cloud
from tests.deploy.gcloud_forks import gcloud_forks
from tests.deploy.gcloud_recorder import recording
from tests.deploy.test_terraform_deploy import deployed
from tests.deploy.test_terraform_permissions import TABLE, may
from tests.image.cloud_build import Worker, loaded, substitutions
from trainmaster.deploy.existing import _LISTS
from trainmaster.deploy.names import CI_POOLS, SETTINGS

BY_DEPLOYER, BY_BUILD, DEPLOYER = TABLE["gcloud"]["deployer"], TABLE["gcloud"]["build"], TABLE["deployer"]
NO_API = ("auth", "application-default", "print-access-token")
"""It reads the credentials of this machine, and calls nothing in a project."""
NOT_YET = ("workload-identity", "service-agents", "generate")
"""Newer than the gcloud of these tests. Its calls in the table are those of the documentation, to WORKLOAD_IDENTITY."""
WORKLOAD_IDENTITY = "workloadidentity"
SECRET = f"gcloud secrets versions describe latest --secret=s --project={PROJECT}"
"""Only for a policy with receivers of notices."""
needs_gcloud = pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not on PATH")


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    """Commands that `deploy`, `undeploy` and Terraform run, in an empty project and in a deployed one."""
    empty, full = (Cloud(tmp_path_factory.mktemp(name)) for name in ("empty", "full"))
    deployed(full)
    key = f"projects/{PROJECT}/locations/{REGION}/keyRings/r/cryptoKeys/k"
    others = f'data_buckets = ["there"]\njob_keys = ["{key}"]\n'
    (empty.folder / SETTINGS).write_text(f'kms_key = "{key}"\nsoft_delete_s = 604800\nci = {{}}\n{others}')
    empty.has_bucket("there")
    pool = dict(zip(("name", "displayName"), next(iter(CI_POOLS.items())), strict=True))
    empty.content |= {"keys": [key], "lists": {"iam workload-identity-pools": [pool]}}
    asked = {
        *empty.up().asked,
        *full.up().asked,
        *full.down("--delete-buckets").asked,
        trigger_update(),
        SECRET,
    }
    return frozenset(
        re.sub(r"gs://[^ /]+", "gs://bucket", line.removeprefix("gcloud "))
        for line in asked
        if line.startswith("gcloud ")
    )


def trigger_update() -> str:
    """The update of a trigger's subscription with every flag that triggers.tf gives it."""
    text = (ROOT / "trainmaster/deploy/terraform/triggers.tf").read_text()
    flags = {line.strip().split("--")[1].split("=")[0] for line in text.splitlines() if '"--' in line}
    values = {
        "project": "p",
        "ack-deadline": "120",
        "expiration-period": "never",
        "min-retry-delay": "10s",
        "max-retry-delay": "600s",
        "message-retention-duration": "86400s",
        "dead-letter-topic": "projects/p/topics/t",
        "max-delivery-attempts": "50",
    }
    assert flags == set(values)
    return "gcloud pubsub subscriptions update x " + " ".join(
        f"--{flag}={values[flag]}" for flag in sorted(flags)
    )


def commands_in_code() -> Iterator[tuple[str, ...]]:
    """The first words of each gcloud command in trainmaster/."""
    for path in (ROOT / "trainmaster").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="gcloud" | "describe_resource" | "list_resources"), args=args):
                    yield tuple(leading_words(args))
    yield from (words for words, _ in _LISTS.values())


def leading_words(args: list[ast.expr]) -> Iterator[str]:
    for arg in args:
        if not (isinstance(arg, ast.Constant) and isinstance(arg.value, str)):
            return
        yield arg.value


@pytest.mark.slow
def test_every_command_in_the_code_is_among_those_that_are_tried(commands: frozenset[str]) -> None:
    found = [words for words in commands_in_code() if words]
    assert len(found) > len(_LISTS) + 5
    for words in found:
        plain = " ".join(word for word in words if not word.startswith("--"))
        assert any(command.startswith(plain) for command in commands), words


@needs_gcloud
@pytest.mark.slow
@pytest.mark.timeout(600)  # gcloud takes seconds to start
def test_every_call_for_the_commands_of_a_deployment_is_in_the_table(
    commands: frozenset[str], tmp_path: Path
) -> None:
    own = {key: value for key, value in os.environ.items() if not key.lower().endswith("_proxy")}
    with recording() as recorder, gcloud_forks({**own, **recorder.environment(tmp_path)}) as run:
        for command in sorted(commands - {" ".join(NO_API)}):
            if command.split()[:3] == list(NOT_YET):
                continue
            before = len(recorder.calls)
            assert run(command.split()) == 0, command
            assert len(recorder.calls) > before, command
    assert set(recorder.calls) == {
        row["call"] for row in BY_DEPLOYER if row["call"].split()[1] != WORKLOAD_IDENTITY
    }
    assert not recorder.faults, recorder.faults


@needs_gcloud
@pytest.mark.slow(seconds=10)
def test_every_call_for_the_step_that_publishes_the_image_is_in_the_table(tmp_path: Path) -> None:
    build = loaded()
    (tmp_path / "trainer-image.txt").write_text("image@sha256:0")
    step = next(each for each in build["steps"] if each["id"] == "publish-image")
    with recording() as recorder:
        step["env"] += [f"{name}={value}" for name, value in recorder.environment(tmp_path).items()]
        worker = Worker(workspace=tmp_path, output=tmp_path, shims=tmp_path, values=substitutions(build))
        worker.run(build, "publish-image")
    assert set(recorder.calls) == {row["call"] for row in BY_BUILD}
    assert not recorder.faults, recorder.faults


def test_every_step_of_a_build_that_runs_gcloud_is_tried() -> None:
    """deploy-functions by tests/deploy/test_cloudbuild_deploy.py, the other here."""
    steps = {step["id"] for step in loaded()["steps"] if "gcloud " in " ".join(step["args"])}
    assert steps == {"deploy-functions", "publish-image"}


def test_the_least_roles_of_the_deployer_allow_every_call_and_the_table_lists_no_other_permission() -> None:
    held = {permission for permissions in DEPLOYER.values() for permission in permissions}
    assert {permission for row in BY_DEPLOYER for permission in row["permissions"]} == held


def test_a_build_may_make_every_call() -> None:
    needed = {permission for row in BY_BUILD for permission in row["permissions"]}
    assert needed <= {permission for permission, on in may("build") if on == "topic images"}


def test_the_guide_names_the_same_roles() -> None:
    guide = (ROOT / "docs/reference/deployment.md").read_text()
    section = guide.split("### Permissions of the deployer", 1)[1]
    table = section[section.index("| role |") :].split("\n\n", 1)[0]
    assert set(re.findall(r"`(roles/[\w.]+)`", table)) == set(DEPLOYER)
