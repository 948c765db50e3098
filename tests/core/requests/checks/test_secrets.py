"""A request names secrets and holds none; what looks like one is refused and never quoted."""

import json
from typing import Any

import pytest

from tests.core.parsed import answer_to
from tests.core.roles import MACHINE, OTHER, accepted, answer, request, told
from tests.core.shipped import REQUEST_RULES
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.documents.values import Document
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.reading import with_places
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
        ({"args": "--epochs=5 --password=hunter2"}, "$.args", "hunter2"),
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
def test_an_apparent_secret_is_refused_unquoted(changes: dict[str, Any], path: str, secret: str) -> None:
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


NAMES = """
    db_pass MYSQL_PWD mysql-pwd pass pwd passwd PGPASSWORD ssh_passphrase apikey apiKey openai_api_key
    OPENAI_API_KEY2 AccountKey bot_token client_secret
"""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, "hunter2") for name in NAMES.split()),
        ("API_TOKEN", "abcdef0123456789abcdef"),
        ("db.password", "12345678"),
        ("wandb-key", "0f" * 20),
        ("storage", "DefaultEndpointsProtocol=https;AccountName=me;AccountKey=hunter2=="),
        ("dsn", "Server=db;Uid=me;Pwd=hunter2;"),
        ("data", "https://host/x?token=hunter2"),
    ],
)
def test_one_rule_finds_secrets_in_variables_and_in_flags(name: str, value: str) -> None:
    variable = name.replace("-", "_").replace(".", "_")
    assert list(told(request(env={variable: value}))) == [f"$.env.{variable}"]
    assert list(told(request(args=[f"--{name}={value}"]))) == ["$.args[0]"]
    if "=" not in value:
        assert list(told(request(args=[f"--{name}", value]))) == ["$.args[1]"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tokenizer", "bert-base"),
        ("max_tokens", "512"),
        ("num_tokens", "7"),
        ("pad_token", "PAD"),
        ("eos_token", "</s>"),
        ("key_metric", "val_accuracy"),
        ("key", "val_accuracy"),
        ("sort_key", "name"),
        ("primary_key", "customer_id"),
        ("passes", "3"),
        ("pass", "2"),
        ("forward_pass", "fast"),
        ("single_pass", "true"),
        ("pass_through", "yes"),
        ("bypass", "cache"),
        ("compass", "north"),
        ("password_file", "/run/secrets/db"),
        ("old_pwd", "/work"),
        ("wandb_api_key_name", REFERENCE),
        ("db_pass", REFERENCE),
        ("api_token", "$(TOKEN_OF_THE_IMAGE)"),
        ("secretary", "jane"),
        ("keyboard", "us"),
    ],
)
def test_names_that_only_resemble_those_of_secrets_are_taken(name: str, value: str) -> None:
    accepted(request(env={name: value}))
    accepted(request(args=[f"--{name}={value}"]))
    accepted(request(args=[f"--{name}", value]))


@pytest.mark.parametrize(
    "value",
    [
        *("$TOKEN", "${TOKEN}", "${token}", "$(token)", "$$(TOKEN)", "$(cat /run/x)", "$1", '"$TOKEN"'),
        *(
            "${A}-${B}",
            "$A:$B",
            "${TOKEN:?missing token}",
            "${TOKEN:-}",
            "${rule.token}",
            "$TOKEN|jq",
            "$TOKEN)",
        ),
    ],
)
def test_a_value_that_is_filled_in_later_is_no_secret(value: str) -> None:
    accepted(request(env={"PASSWORD": value}, command=["sh", "-c", f"PASSWORD={value} run"]))


@pytest.mark.parametrize(
    "value", ["$ecret", "$", "$$", "$tr0ng!", "$TOKEN!x", "$USERhunter2", "${TOKEN:-hunter2}", "${}"]
)
def test_a_secret_that_begins_like_a_variable_is_refused(value: str) -> None:
    assert list(told(request(env={"PASSWORD": value}))) == ["$.env.PASSWORD"]
    assert secret_lines(Document(value=None, text=f"env:\n  PASSWORD: {value}\n"), ("*PASSWORD",)) == {2}


@pytest.mark.parametrize(
    "text",
    [
        "env: {PASSWORD: 31337}",
        "env:\n  - PASSWORD=31337",
        "env:\n  PASSWORD: 31337",
        "args: {password: 31337}",
        "env: [x\nPASSWORD: 31337",
    ],
)
def test_no_report_quotes_the_value_on_a_line_that_it_hides(text: str) -> None:
    text = f"model_name: m\nimage: {OTHER}\ncluster: {{chief: {{machine: n1-standard-4}}}}\n{text}\n"
    found = instance_of(Refused, answer_to(text))
    read = parse_document(text.encode(), as_json=False)
    placed = instance_of(Refused, with_places(found, read, REQUEST_RULES.policy))
    report = json.dumps([fault.document for fault in placed.faults])
    assert placed.faults
    assert "31337" not in report


@pytest.mark.parametrize(
    "value", ["7" * 200_000 + "x", "a" * 200_000, "a=" * 100_000, "$A" * 100_000 + "!", "aA0" * 60_000 + " "]
)
def test_a_long_value_under_a_name_of_secrets_is_read_in_linear_time(value: str) -> None:
    assert list(told(request(env={"db_pass": value}))) == ["$.env.db_pass"]


def test_a_secret_in_a_file_for_gcloud_is_found_at_its_own_place() -> None:
    container = {"imageUri": OTHER, "env": [{"name": "API_KEY", "value": "hunter2"}]}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    found = instance_of(Refused, answer({"displayName": "m", "jobSpec": {"workerPoolSpecs": [pool]}}))
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
        ("a: 1\nAPI_TOKEN: x\nb: 2", {2}),
        ("a: 1\nb: 2\nargs:\n  - --api-token\n  - x\nc: 3", {4, 5}),
        ("a: 1\nb: 2\n- value: x\n  name: API_TOKEN\nc: 3\n", {3, 4, 5}),
        ("b: 2\n\n\n- name: API_TOKEN\n  value: x\nc: 3", {3, 4, 5}),
        ("b: 2\r\nc: 3\r\nAPI_TOKEN: |\r\n   x\r\nd: 4", {3, 4}),
        ("a: 1\nkey: |\n" + PEM + "b: 1", {3, 4, 5}),
        ("a: 1\n" + PEM[:27] + "\nabc\nabc", {2, 3, 4}),
        (f"a: 1\n# {KEY}\nb: 1", {2}),
        ("tokens: 1\nmodel_name: token\n", set()),
        (f"a: 1\nAPI_TOKEN: {REFERENCE}\nLR: 0.1", set()),
        ("# one pass over the token\nargs: --epochs=5\n", set()),
        ("a: 1\nb: [--epochs=5, --pass=x]\nargs: 5", {2}),
        ("API_TOKEN hunter2\nc: 3", {1}),
        ("A_TOKEN: $TOKEN\nB_TOKEN: ${TOKEN}\nC_TOKEN: [$(TOKEN)]\nD_TOKEN: $ecret", {4}),
        ('a: 1\nPASSWORD: "}x"\nc: 3', {2}),
        (f'a: 1\nb: {{"PASSWORD": "{REFERENCE}"}}\nc: 3', set()),
    ],
)
def test_a_report_quotes_no_line_that_may_hold_a_secret(text: str, hidden: set[int]) -> None:
    read = Document(value=None, text=text)
    assert secret_lines(read, ("*_TOKEN",)) == hidden


@pytest.mark.parametrize("line", ["API_TOKEN: ", PEM[:27], "x_TOKEN\n", "_" * 100, "a.b-c"])
def test_a_large_text_of_secrets_is_read_in_linear_time(line: str) -> None:
    read = Document(value=None, text=line * (MAX_REQUEST_BYTES // len(line)))
    assert secret_lines(read, ("*_TOKEN",)) <= frozenset(range(1, MAX_REQUEST_BYTES))
