"""A request names secrets and holds none; what looks like one is refused and never quoted."""

import json
from typing import Any

import pytest

from tests.core.roles import MACHINE, OTHER, accepted, answer, request, told
from trainmaster.orchestrator.core.documents.values import Document
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

REFERENCE = "projects/my-project/secrets/wandb/versions/3"
KEY = "AIza" + "Sy0123456789_abcdefghijklmnopqrstuv"
PEM = "-----BEGIN PRIVATE " + "KEY-----\nMIIE\n-----END PRIVATE " + "KEY-----\n"


@pytest.mark.parametrize(
    ("changes", "path", "secret"),
    [
        ({"env": {"WANDB_API_KEY": "hunter2"}}, "$.env.WANDB_API_KEY", "hunter2"),
        ({"env": {"db_password": "hunter2"}}, "$.env.db_password", "hunter2"),
        ({"env": {"MAPS": KEY}}, "$.env.MAPS", KEY),
        ({"env": {"CERT": PEM}}, "$.env.CERT", "MIIE"),
        ({"args": ["--api-key=hunter2"]}, "$.args[0]", "hunter2"),
        ({"args": ["--password", "hunter2"]}, "$.args[1]", "hunter2"),
        ({"command": ["sh", "-c", "DB_PASSWORD=hunter2 run"]}, "$.command[2]", "hunter2"),
        ({"args": ["--db=postgres://me:hunter2@db/x"]}, "$.args[0]", "hunter2"),
        (
            {"cluster": {"chief": {**MACHINE, "env": {"TOKEN": "hunter2"}}}},
            "$.cluster.chief.env.TOKEN",
            "hunter2",
        ),
        ({"labels": {"team": KEY}}, "$.labels.team", KEY),
        ({"network": f"projects/p/{KEY}"}, "$.network", KEY),
    ],
)
def test_what_looks_like_a_secret_is_refused_and_not_quoted(
    changes: dict[str, Any], path: str, secret: str
) -> None:
    faults = told(request(**changes))
    assert list(faults) == [path]
    assert "projects/PROJECT/secrets/NAME" in faults[path].allowed
    assert secret not in str(faults[path])


@pytest.mark.parametrize(
    "changes",
    [
        {"env": {"WANDB_API_KEY": REFERENCE}},
        {"env": {"PASSWORD": "", "SECRET": "$(FROM_ELSEWHERE)"}},
        {"env": {"PASSWORD_FILE": "/run/x", "MAX_TOKENS": "512", "PAD_TOKEN": "<pad>"}},
        {"args": ["--tokenizer=bert", "--num_tokens", "7", f"--api_key={REFERENCE}"]},
        {"args": ["--data=gs://bucket/a@b", "--tracker=https://host:443/x"]},
    ],
)
def test_the_name_of_a_secret_and_other_values_are_taken(changes: dict[str, Any]) -> None:
    accepted(request(**changes))


def test_a_secret_in_a_file_for_gcloud_is_found_at_its_own_place() -> None:
    container = {"imageUri": OTHER, "env": [{"name": "API_KEY", "value": "hunter2"}]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    found = answer({"displayName": "m", "jobSpec": {"workerPoolSpecs": [pool]}})
    assert isinstance(found, Refused)
    report = json.dumps([fault.document for fault in found.faults])
    assert "hunter2" not in report
    assert "containerSpec.env[0]" in report


DIGEST = f"@sha256:{'0f' * 32}"


@pytest.mark.parametrize("image", [OTHER, OTHER.partition(":")[0]])
def test_an_image_that_must_have_a_digest_is_refused_without(image: str) -> None:
    faults = told(request(image=image), require_digest=("**",))
    assert list(faults) == ["$.image"]
    assert "@sha256:…" in faults["$.image"].allowed


def test_a_digest_is_wanted_of_the_named_images_alone() -> None:
    accepted(request(image=OTHER + DIGEST), require_digest=("**",))
    accepted(request(), require_digest=("*-docker.pkg.dev/*/release/**",))


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("a: 1\nAPI_TOKEN: x\nb: 2", {1, 2}),
        ("a: 1\nb: 2\nargs:\n  - --api-token\n  - x\nc: 3", {3, 4, 5}),
        ("a: 1\nb: 2\n- value: x\n  name: API_TOKEN\nc: 3\n", {3, 4, 5}),
        ("b: 2\n\n\n- name: API_TOKEN\n  value: x\nc: 3", {3, 4, 5}),
        ("b: 2\r\nc: 3\r\nAPI_TOKEN: |\r\n   x\r\nd: 4", {2, 3, 4}),
        ("a: 1\nkey: |\n" + PEM + "b: 1", {3, 4, 5}),
        ("a: 1\n" + PEM[:27] + "\nabc\nabc", {2, 3, 4}),
        (f"a: 1\n# {KEY}\nb: 1", {2}),
        ("tokens: 1\nmodel_name: token\n", set()),
    ],
)
def test_a_report_quotes_no_line_that_may_hold_a_secret(text: str, hidden: set[int]) -> None:
    read = Document(value=None, text=text)
    assert secret_lines(read, ("*_TOKEN",)) == hidden


@pytest.mark.parametrize("line", ["API_TOKEN: ", PEM[:27], "x_TOKEN\n", "_" * 100, "a.b-c"])
def test_a_large_text_of_secrets_is_read_in_linear_time(line: str) -> None:
    read = Document(value=None, text=line * (MAX_REQUEST_BYTES // len(line)))
    assert secret_lines(read, ("*_TOKEN",)) <= frozenset(range(1, MAX_REQUEST_BYTES))
