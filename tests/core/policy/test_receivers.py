"""The policy's receivers: every wrong one is named with its place and repair, and no private address passes."""

from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.shipped import schema
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.notices.notice import PREFIX, Notice
from trainmaster.orchestrator.core.notices.routing import receivers_of, state_of_notice
from trainmaster.orchestrator.core.policy.checks import policy_faults
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.policy.receivers import is_public, url_problem

ROOT = Path(__file__).resolve().parents[3]
SMALL = yaml.safe_load((ROOT / "schemas/examples/valid/policy.v1.small.yaml").read_text())
TYPES: list[str] = schema("notice.v1")["properties"]["type"]["enum"]
AT = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = {"project": "my-project", "region": "us-central1", "inbox_bucket": "i", "models_bucket": "m"}


def policy(*receivers: object, **more: object) -> Policy:
    return policy_from({**SMALL, "notify": [*receivers], **more}, NAMES)


def hook(url: str = "https://ops.example.com/x", **more: object) -> dict[str, Any]:
    return {"name": "ops", "webhook": {"url": url, "secret": "a"}, **more}


def test_all_that_is_wrong_with_receivers_is_said_at_once_with_place_and_repair() -> None:
    receivers = [
        hook(),
        hook("http://ops.example.com/"),
        hook("https://u:p@ops.example.com/", when={"teams": ["x"], "models": ["A/*"]}),
        {"name": "c", "github": {"repository": "o/n", "secret": "s", "api": "https://10.0.0.1/"}},
    ]
    faults = policy_faults({**SMALL, "notify": receivers}, NAMES)
    assert [fault.path for fault in faults] == [
        "$.notify[1].name",
        "$.notify[1].webhook.url",
        "$.notify[2].name",
        "$.notify[2].webhook.url",
        "$.notify[2].when.models[0]",
        "$.notify[2].when.teams",
        "$.notify[3].github.api",
    ]
    assert all(fault.repair or fault.allowed for fault in faults)
    assert "u:p" not in str(faults)


@pytest.mark.parametrize(
    ("receiver", "place"),
    [
        ({"name": "a"}, "$.notify[0]"),
        ({"name": "a", "teams": {"url": "x"}}, "$.notify[0].teams"),
        ({"name": "a", "slack": {"secret": "s"}, "email": {"to": ["a@b"]}}, "$.notify[0]"),
        ({"name": "A b", "slack": {"secret": "s"}}, "$.notify[0].name"),
        (
            {"name": "a", "slack": {"secret": "https://hooks.slack.com/services/x"}},
            "$.notify[0].slack.secret",
        ),
        ({"name": "a", "webhook": {"url": "https://a.b"}}, "$.notify[0].webhook.secret"),
        ({"name": "a", "email": {"to": ["ops"]}}, "$.notify[0].email.to[0]"),
        ({"name": "a", "github": {"repository": "o/n/../x", "secret": "s"}}, "$.notify[0].github.repository"),
        ({"name": "a", "slack": {"secret": "s"}, "when": {"states": ["done"]}}, "$.notify[0].when.states[0]"),
        ({"name": "a", "slack": {"secret": "s"}, "when": {"team": ["x"]}}, "$.notify[0].when.team"),
    ],
)
def test_a_wrong_receiver_has_its_place(receiver: dict[str, Any], place: str) -> None:
    faults = schema_faults(schema("policy.v1"), {**SMALL, "notify": [receiver]})
    assert place in [fault.path for fault in faults]
    assert all(fault.allowed or fault.repair for fault in faults)


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1", "127.0.0.1", "127.1", "2130706433", "0x7f000001", "0.0.0.0", "169.254.169.254", "100.64.0.1",
        "224.0.0.1", "[::1]", "[fe80::1]", "[fc00::1]", "[::ffff:127.0.0.1]", "[2002:a00:1::]", "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::a00:1]", "[::10.0.0.1]", "[::ffff:0:a00:1]", "[fec0::1]",
        "localhost", "localhost.", "a.localhost", "metadata.google.internal", "metadata.google.internal.", "printer.local",
    ],
)  # fmt: skip
def test_a_private_host_is_refused_when_the_policy_is_read(host: str) -> None:
    assert "public" in (url_problem(f"https://{host}/x") or "")


@pytest.mark.parametrize(
    "url", ["https://8.8.8.8/", "https://[2606:4700::1111]/x", "https://a.example:8443/x/y"]
)
def test_a_public_host_passes(url: str) -> None:
    assert url_problem(url) is None


@pytest.mark.parametrize(
    "url",
    [
        "ftp://a.b/", "//a.b/", "https:///x", "https://a.b/?token=1", "https://a.b/#x", "https://a.b:99999/", "x",
        "https://a.b/é", "https://a b/", "https://a.b/\n", "http://receiver.localhost:80/", "https://[::1",
    ],
)  # fmt: skip
def test_what_is_no_plain_https_url_is_refused(url: str) -> None:
    assert url_problem(url) is not None


def test_the_address_behind_an_address_counts() -> None:
    assert is_public(ip_address("::ffff:8.8.8.8"))
    assert is_public(ip_address("64:ff9b::8.8.8.8"))
    assert not is_public(ip_address("ff02::1"))


def notice(kind: str, **data: object) -> Notice:
    return Notice(id="x", type=f"{PREFIX}{kind}.v1", subject="s", time=AT, data=data)


@pytest.mark.parametrize("kind", TYPES)
def test_every_state_of_a_notice_may_be_named_and_is_quiet_only_before_an_end(kind: str) -> None:
    state = state_of_notice(notice(kind.removeprefix(PREFIX).removesuffix(".v1")))
    if state == "test":
        return
    found = notice(kind.removeprefix(PREFIX).removesuffix(".v1"))
    assert schema_faults(schema("policy.v1"), {**SMALL, "notify": [hook(when={"states": [state]})]}) == []
    assert receivers_of(found, policy(hook(when={"states": [state]})).notify)
    is_quiet = state in ("reserved", "waiting", "submitted", "running")
    assert bool(receivers_of(found, policy(hook()).notify)) is not is_quiet


@pytest.mark.parametrize(
    ("when", "data", "gets"),
    [
        ({}, {}, True),
        ({"models": ["cassava-*"]}, {"model_name": "cassava-b0"}, True),
        ({"models": ["cassava-*"]}, {"model_name": "horses"}, False),
        ({"models": ["cassava-*"]}, {}, False),
        ({"teams": ["vision"]}, {"team": "vision"}, True),
        ({"teams": ["vision"]}, {"team": "speech"}, False),
        ({"teams": ["vision"]}, {}, False),
        ({"teams": ["vision"], "models": ["a"]}, {"team": "vision", "model_name": "b"}, False),
    ],
)
def test_each_key_of_when_narrows_what_a_receiver_gets(
    when: dict[str, Any], data: dict[str, Any], gets: bool
) -> None:
    found = policy(hook(when=when), teams={"vision": {}, "speech": {}})
    assert bool(receivers_of(notice("run.failed", **data), found.notify)) is gets
