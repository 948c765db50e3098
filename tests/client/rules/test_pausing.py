"""Pausing and resuming a rule changes one line of its file, and only of the version that was read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.client.rule_documents import write_rules
from tests.client.served import Served, served_context
from trainmaster.client.errors import ClientRefused, NotFound, TimedOut
from trainmaster.client.rules.changing import pause_refusal, set_enabled, with_enabled
from trainmaster.client.rules.listing import find_rule

WEEKLY = b"""# every Monday
when:
  - schedule: {cron: "0 3 * * 1"}
  - manual: {}
request_uri: gs://inbox/templates/a.yaml
"""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path) as served:
        write_rules(served)
        inbox(served).blob("rules/weekly.yaml").upload_from_string(WEEKLY)
        yield served


def inbox(served: Served) -> Any:  # Any: the client is untyped
    return served.clients.storage.bucket(served.clients.context.inbox_bucket)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (WEEKLY, WEEKLY + b"enabled: false\n"),
        (b"enabled: true  # for now\n" + WEEKLY, b"enabled: false  # for now\n" + WEEKLY),
        (WEEKLY + b"enabled: 'yes'\n", WEEKLY + b"enabled: false\n"),
        (b"request: |\n  enabled: true\n", b"request: |\n  enabled: true\nenabled: false\n"),
    ],
)
def test_one_line_of_yaml_changes(before: bytes, after: bytes) -> None:
    assert with_enabled(before, enabled=False, as_json=False) == after


@pytest.mark.parametrize("as_json", [True, False], ids=[".json", ".yaml"])
def test_a_json_file_gets_the_key(as_json: bool) -> None:
    changed = with_enabled(b'{"when": [], "enabled": true, "x": "\xc3\xa4"}', enabled=False, as_json=as_json)
    assert json.loads(changed) == {"when": [], "enabled": False, "x": "ä"}


@pytest.mark.parametrize(
    "content", [b"{when: [], request: {}}", b"- a", b"a: [", b"when: []\n...\n", b"\xff"]
)
def test_a_file_that_cannot_be_changed_safely_is_left_to_its_author(content: bytes) -> None:
    with pytest.raises(ClientRefused, match="Write `enabled: false` into it"):
        with_enabled(content, enabled=False, as_json=False)


def test_the_changed_file_is_dropped(served: Served) -> None:
    done = served.trainmaster("rules", "pause", "weekly", "--wait-s", "0")
    assert done.status == 5
    assert "Pausing weekly in the local stack on" in done.err
    assert "rules/weekly.yaml is uploaded, but after 0 s: the service has not answered" in done.err
    assert inbox(served).blob("rules/weekly.yaml").download_as_bytes() == WEEKLY + b"enabled: false\n"


@pytest.mark.parametrize(
    ("rule", "enabled", "why"),
    [
        ("bad", False, "The file of bad is not accepted"),
        ("new", False, "The file of new is not accepted"),
        ("weekly", True, "weekly is not paused."),
    ],
)
def test_only_accepted_rules_are_changed(served: Served, rule: str, enabled: bool, why: str) -> None:
    found = find_rule(served.clients, rule)
    assert pause_refusal(found, enabled=enabled).startswith(why)
    with pytest.raises(ClientRefused, match=why):
        set_enabled(served.clients, found, enabled=enabled, timeout_s=0)


def test_a_rule_that_is_as_wanted_stays_so_and_one_that_cannot_change_keeps_the_others_as_they_are(
    served: Served,
) -> None:
    resumed = served.trainmaster("rules", "resume", "weekly")
    assert (resumed.status, resumed.out, resumed.err) == (0, "weekly accepted\n", "weekly is not paused.\n")
    for other, status in {"new": 2, "unknown": 3}.items():
        done = served.trainmaster("rules", "pause", "weekly", other, "--wait-s", "0")
        assert (done.status, done.out) == (status, "")
        assert inbox(served).blob("rules/weekly.yaml").download_as_bytes() == WEEKLY


def test_a_deleted_file_is_not_written_again(served: Served) -> None:
    found = find_rule(served.clients, "weekly")
    inbox(served).delete_blob("rules/weekly.yaml")
    with pytest.raises(NotFound, match=r"rules/weekly\.yaml does not exist any more"):
        set_enabled(served.clients, found, enabled=False, timeout_s=0)
    assert "is deleted" in pause_refusal(find_rule(served.clients, "weekly"), enabled=False)


def test_a_refusal_of_the_service_is_raised_and_a_paused_rule_is_not_paused_again(served: Served) -> None:
    with pytest.raises(TimedOut):
        set_enabled(served.clients, find_rule(served.clients, "weekly"), enabled=False, timeout_s=0)
    problems = ["$.request: missing"]
    refused = {"state": "refused", "problems": problems, "generation": 2**62, "rule_id": "weekly"}
    status = {"schema": "rule_status.v1", "dropped_name": "rules/weekly.yaml", "updated_at": "2026-03-04T12:20:00.000000Z"}  # fmt: skip
    found = find_rule(served.clients, "weekly")
    served.write("ledger", "status/rules/weekly.yaml.json", {**status, **refused})
    with pytest.raises(ClientRefused, match=r"\$\.request: missing"):
        set_enabled(served.clients, found, enabled=False, timeout_s=60)
