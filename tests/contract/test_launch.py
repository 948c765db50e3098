"""A request becomes one job: in order, out of order, twice, and across crashes; a lease ends with a failed delivery."""

import hashlib
import json
from datetime import timedelta

import pytest
import yaml

from tests.contract.boundaries import At, dies_after, raising
from tests.contract.rooms import Answering
from tests.contract.schemas import RECORD, STATUS, SUBMITTED
from tests.contract.world import LEASE, LEDGER, REQUEST, Boundary, Killed, World
from tests.core.ai_platform_jobs import custom
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import (
    LeaseHeld,
    LeaseTooShort,
    ServiceFailed,
    SubmissionDeferred,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.flows.lifecycle.status import write_status


def test_an_upload_becomes_a_labelled_job_and_a_submitted_record(world: World) -> None:
    incoming = world.drop_and_launch()
    (job,) = world.jobs.all()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUBMITTED
    assert present(record.job).name == job.name
    assert job.labels == {
        "team": "agronomy",
        "trainmaster_run_id": incoming.run_id,
        "trainmaster_model": "cassava-resnet50",
    }
    assert job.output_uri == f"gs://models/cassava-resnet50/{incoming.run_id}"
    RECORD.validate(encoded(record))


def test_a_first_delivery_costs_twelve_storage_operations_and_a_second_two(world: World) -> None:
    incoming = world.drop()
    first, second = Boundary(), Boundary()
    world.launch(incoming, first)
    world.launch(incoming, second)
    assert first.calls == [
        "read ledger",
        "describe inbox",
        "read inbox",
        "write active",
        "write submitted",
        "write runs",
        "write status",
        "list ledger",
        "submit",
        "write jobs",
        "publish",
        "publish",
        "write runs",
        "write index",
        "write status",
    ]
    assert second.calls == ["read ledger", "read ledger"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("requests/cassava.yaml", REQUEST),
        ("requests/bom.yml", b"\xef\xbb\xbf" + REQUEST.replace(b"\n", b"\r\n")),
        ("requests/c.json", json.dumps(yaml.safe_load(REQUEST), indent=1).encode()),
        ("requests/Census 2.yaml", yaml.safe_dump(custom()).encode()),
    ],
)
def test_an_accepted_request_is_kept_as_text_with_the_line_of_each_path(name: str, content: bytes) -> None:
    world = World()
    incoming = world.drop_and_launch(content, name)
    request = present(world.record(incoming.run_id).request)
    kept = world.objects.read(
        LEDGER, request.original.uri.removeprefix(f"gs://{LEDGER}/"), max_bytes=MIB
    ).content
    assert hashlib.sha256(kept).hexdigest() == request.original.sha256
    document = json.loads(kept)
    SUBMITTED.validate(document)
    assert document["text"].encode() == content
    lines = content.decode("utf-8-sig").splitlines()
    for path, line in document["lines"].items():
        key = path.rpartition(".")[2].partition("[")[0].partition("'")[0]
        assert key.strip("$") in lines[line - 1] or "[" in path


def test_the_text_is_kept_once_after_a_crash_before_the_record(world: World) -> None:
    incoming = world.drop()
    with pytest.raises(Killed):
        world.launch(incoming, dies_after("write submitted"))
    world.launch(incoming)
    (kept,) = [each.name for each in world.objects.listing(LEDGER, "submitted/")]
    request = present(world.record(incoming.run_id).request)
    assert request.original.uri == f"gs://{LEDGER}/{kept}"


def test_a_lease_keeps_other_deliveries_away_until_it_expires_and_then_the_job_found_is_adopted() -> None:
    world = World()
    incoming = world.drop()
    with pytest.raises(Killed):
        world.launch(incoming, dies_after("submit"))
    with pytest.raises(LeaseHeld) as held:
        world.launch(incoming)
    assert held.value.retryable
    assert world.reconcile() == []
    (job,) = world.jobs.all()
    world.clock.advance(LEASE)
    boundary = Boundary()
    world.launch(incoming, boundary)
    assert "submit" not in boundary.calls
    assert present(world.record(incoming.run_id).job).name == job.name


def test_a_lease_about_to_end_is_not_used_to_submit(world: World) -> None:
    slow = At("write runs", after=lambda: world.clock.advance(LEASE - timedelta(seconds=10)))
    with pytest.raises(LeaseTooShort):
        world.launch(world.drop(), slow)
    assert world.jobs.all() == []


def test_without_quota_the_run_waits_and_the_reconciler_submits_it_when_it_is_due(world: World) -> None:
    incoming = world.drop()
    full = Answering(world, SubmissionDeferred(429, "quota"), SubmissionDeferred(429, "quota"))
    world.launch(incoming, jobs=full)
    assert world.record(incoming.run_id).state is RunState.WAITING
    world.reconcile()
    assert world.record(incoming.run_id).state is RunState.WAITING
    assert world.jobs.all() == []
    world.clock.advance(timedelta(seconds=30))
    world.launch(incoming, jobs=full)
    assert len(full.sent) == 1, "a waiting run is submitted from the queue"
    world.reconcile(jobs=full)
    waiting = present(world.record(incoming.run_id).admission.waiting)
    assert (waiting.attempts, waiting.not_before - world.clock.now()) == (2, timedelta(seconds=60))
    RECORD.validate(encoded(world.record(incoming.run_id)))
    world.reconcile_after(timedelta(seconds=60))
    record = world.record(incoming.run_id)
    assert [step.state for step in record.history] == ["reserved", "waiting", "submitted"]
    assert len(world.jobs.all()) == 1


@pytest.mark.parametrize("does_it", [False, True], ids=["lost request", "lost answer"])
def test_a_submission_that_may_have_succeeded_is_searched_for_before_it_is_repeated(does_it: bool) -> None:
    world = World()
    incoming = world.drop()
    cut = Answering(world, SubmissionUnknown("connection cut"), does_it=does_it)
    if does_it:
        world.launch(incoming, jobs=cut)
    else:
        with pytest.raises(SubmissionUnknown):
            world.launch(incoming, jobs=cut)
        with pytest.raises(LeaseHeld):
            world.launch(incoming, jobs=cut)
        world.clock.advance(LEASE)
        world.launch(incoming, jobs=cut)
    assert len(world.jobs.all()) == 1
    assert len(cut.sent) == (1 if does_it else 2)
    assert world.record(incoming.run_id).state is RunState.SUBMITTED


def test_the_status_of_a_waiting_run_shows_the_latest_reason_and_a_late_writer_changes_nothing() -> None:
    world = World()
    incoming = world.drop()
    full = Answering(world, SubmissionDeferred(429, "no T4"), SubmissionDeferred(429, "no A100"))
    world.launch(incoming, jobs=full)
    earlier = present(world.ledger.find(incoming.run_id))
    assert world.document("status/requests/cassava.yaml.json")["reason"] == "no T4"
    world.reconcile_after(timedelta(seconds=30), jobs=full)
    later = world.document("status/requests/cassava.yaml.json")
    STATUS.validate(later)
    assert (later["state"], later["reason"]) == ("waiting", "no A100")
    write_status(world.services(), earlier)
    assert world.document("status/requests/cassava.yaml.json") == later


NO_ROOM = ServiceFailed("Cloud Storage", "write", "507 the disk is full")


def calls_of_a_launch() -> list[str]:
    world, boundary = World(), Boundary()
    world.launch(world.drop(), boundary)
    return boundary.calls


CALLS = calls_of_a_launch()
RESERVED_AT, SUBMITTED_AT = CALLS.index("write runs"), CALLS.index("submit")


@pytest.mark.parametrize("point", range(RESERVED_AT + 1, SUBMITTED_AT))
@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
def test_after_a_failure_before_submission_a_redelivery_submits_at_once(point: int, is_after: bool) -> None:
    world = World()
    incoming = world.drop()
    failing = Boundary(die_at=point, die_after_the_call=is_after, death=lambda _: NO_ROOM)
    try:
        world.launch(incoming, failing)
    except ServiceFailed:
        world.launch(incoming)
    assert len(world.jobs.all()) == 1
    assert world.record(incoming.run_id).state is RunState.SUBMITTED


def test_a_submission_without_answer_is_counted_although_the_search_for_its_job_fails(world: World) -> None:
    incoming = world.drop()
    cut = Answering(world, SubmissionUnknown("connection cut"), does_it=False)
    with pytest.raises(SubmissionUnknown):
        world.launch(incoming, At("find jobs", before=raising(NO_ROOM)), cut)
    assert world.record(incoming.run_id).submission.unanswered == 1


def test_a_delivery_that_may_have_left_a_job_keeps_its_lease(world: World) -> None:
    incoming = world.drop()
    with pytest.raises(ServiceFailed):
        world.launch(incoming, At("submit", after=raising(NO_ROOM)))
    with pytest.raises(LeaseHeld):
        world.launch(incoming)
    assert len(world.jobs.all()) == 1
