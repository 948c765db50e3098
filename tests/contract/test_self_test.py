"""Self-tests of a deployment are answered, and change nothing else."""

import base64
import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.world import LEDGER, PROJECT, REGION, REQUEST, START, World
from tests.core.shipped import assert_valid
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.entry import parse_hint
from trainmaster.orchestrator.core.events.envelope import PubsubMessage, pubsub_message
from trainmaster.orchestrator.core.events.self_test import (
    DryRun,
    MarkedEntry,
    parse_dry_run,
    parse_marked_entry,
)
from trainmaster.orchestrator.core.requests.incoming import parse_message
from trainmaster.orchestrator.flows.intake import answer_entry, try_request

ID = "0123456789abcdef0123456789abcdef"


def message(data: object, **attributes: str) -> PubsubMessage:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return PubsubMessage(message_id="17", publish_time=START, attributes=attributes, data=raw)


def entry(job_id: str = "0", mark: object = ID) -> dict[str, Any]:
    labels = {"job_id": job_id, "project_id": "p", "task_name": "service"}
    return {
        "resource": {"type": "ml_job", "labels": labels},
        "labels": {"trainmaster_self_test": mark},
        "jsonPayload": {"message": "Job completed successfully."},
        "timestamp": (START - timedelta(seconds=2)).isoformat(),
    }


def marked(job_id: str = "0", mark: object = ID) -> MarkedEntry | None:
    return parse_marked_entry(message(entry(job_id, mark)))


def dry_run(content: bytes, **attributes: str) -> DryRun:
    return present(parse_dry_run(message(content, dry_run="true", self_test_id=ID, **attributes)))


def read_answer(world: World, self_test_id: str = ID) -> dict[str, Any]:
    found = world.document(f"self-test/{self_test_id}.json")
    assert_valid(found, "self_test.v1")
    return found


def ledger_names(world: World) -> list[str]:
    return [each.name for each in world.objects.listing(LEDGER, "")]


def test_a_marked_entry_is_answered_with_its_latency_and_nothing_else_is_written(world: World) -> None:
    found = present(marked())
    result = answer_entry(world.services(), found)
    answer = read_answer(world)
    assert (answer["entry_point"], answer["latency_s"]) == ("on_job_log", 2.0)
    assert ledger_names(world) == [f"self-test/{ID}.json"]
    assert ID in result.message
    assert not world.notices.published


def test_a_redelivered_entry_keeps_the_first_answer(world: World) -> None:
    found = present(marked())
    answer_entry(world.services(), found)
    world.clock.advance(timedelta(minutes=5))
    answer_entry(world.services(), found)
    assert read_answer(world)["latency_s"] == 2.0


def test_a_mark_on_a_real_jobs_entry_changes_nothing() -> None:
    """Otherwise any client that may label log entries could hide an end from its run."""
    assert marked(job_id="1234567890123456789") is None
    hint = present(parse_hint(message(entry("1234567890123456789"))))
    assert hint.tells_end


@pytest.mark.parametrize("mark", ["", "ABC", "../../runs/x", ID[:-1], f"{ID}0", f"{ID}\n", 7, None, [ID]])
def test_an_invalid_id_is_not_a_self_test(mark: object) -> None:
    assert marked(mark=mark) is None


def test_a_valid_request_is_answered_with_its_job_and_no_job_is_submitted(world: World) -> None:
    try_request(world.services(), dry_run(REQUEST), None)
    verdict = read_answer(world)["verdict"]
    assert verdict["accepted"]
    assert verdict["submission"]["parent"] == f"projects/{PROJECT}/locations/{REGION}"
    assert verdict["submission"]["kind"] == "customJobs"
    assert verdict["submission"]["body"]["displayName"] == "dry-run"
    assert ledger_names(world) == [f"self-test/{ID}.json"]
    assert not world.jobs.all()
    assert not world.notices.published


@pytest.mark.parametrize(
    ("content", "path"),
    [
        (
            b"model_name: m\nimage: nowhere.example/image\ncluster: {chief: {machine: n1-standard-4}}\n",
            "$.image",
        ),
        (b"", "$"),
        (b"fire: {rule: r}\n", "$.fire"),
        (b"x" * 300_000, "$"),
    ],
)
def test_a_faulty_request_is_answered_with_its_faults(world: World, content: bytes, path: str) -> None:
    try_request(world.services(), dry_run(content), None)
    verdict = read_answer(world)["verdict"]
    assert not verdict["accepted"]
    assert path in [fault["path"] for fault in verdict["faults"]]
    assert ledger_names(world) == [f"self-test/{ID}.json"]


@pytest.mark.parametrize("wanted", ["true", "True", "1", "yes", ""])
def test_every_value_but_false_asks_for_a_dry_run(wanted: str) -> None:
    assert parse_dry_run(message(REQUEST, dry_run=wanted)) is not None


@pytest.mark.parametrize("attributes", [{}, {"dry_run": "false"}, {"self_test_id": ID}])
def test_a_message_that_does_not_ask_for_a_dry_run_is_run(attributes: Mapping[str, str]) -> None:
    assert parse_dry_run(message(REQUEST, **attributes)) is None


@pytest.mark.parametrize("given_id", ["", "runs/x", "../x", ID.upper()])
def test_without_a_usable_id_the_answer_has_one_of_the_messages_own(given_id: str) -> None:
    found = [parse_dry_run(message(REQUEST, dry_run="true", self_test_id=given_id)) for _ in range(2)]
    assert found[0] is not None
    assert found[0] == found[1]
    assert len(found[0].self_test_id) == 32
    int(found[0].self_test_id, 16)


def test_no_run_can_have_the_id_that_stands_in_a_tried_requests_job(world: World) -> None:
    data = {"message": {"messageId": "1", "data": base64.b64encode(REQUEST).decode(),
                        "attributes": {"idempotency_key": "dry-run"}}}  # fmt: skip
    envelope = world.envelope(data)
    assert pubsub_message(envelope).attributes["idempotency_key"] == "dry-run"
    assert parse_message(envelope).run_id != "dry-run"
