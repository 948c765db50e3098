"""The end of a job ends its run, whichever event reports it, in any order and any number of times, and with its cause."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contract.boundaries import At, only_at
from tests.contract.schemas import RECORD
from tests.contract.world import LEASE, REGION, Boundary, Killed, World, labelled
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.machine_metrics import MachineMetric
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import ReasonPending, TrainmasterError
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.completion.complete import PAUSES_S
from trainmaster.orchestrator.flows.lifecycle.follow_up import VANISHED_AGE
from trainmaster.orchestrator.flows.lifecycle.slots import ORPHAN_AGE
from trainmaster.orchestrator.flows.submission.resume import cancel


def launched() -> tuple[World, IncomingDocument, Job]:
    world = World()
    incoming = world.drop_and_launch()
    (job,) = world.jobs.all()
    return world, incoming, job


def test_a_succeeded_job_ends_with_its_model_and_metrics_on_record() -> None:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    world.complete(world.hint(job))
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert record.model is not None
    assert record.model.uri == f"gs://models/cassava-resnet50/{incoming.run_id}/model/"
    assert record.model.metrics == {"accuracy": 0.75, "loss": 1.0}
    assert record.problems == ()
    assert present(record.completion).durations_s == {
        "until_job": 0.0,
        "queued": 60.0,
        "running": 600.0,
        "total": 660.0,
    }
    assert [step.state for step in record.history] == ["reserved", "submitted", "running", "succeeded"]
    RECORD.validate(encoded(record))
    assert world.document("status/requests/cassava.yaml.json")["model_uri"] == record.model.uri


WAY = ("reserved", "submitted", "running", "succeeded")


def ids(incoming: IncomingDocument, *states: str) -> list[str]:
    """The ids of the notices of these states."""
    return [f"{incoming.run_id}/{state}" for state in states]


def test_an_end_costs_thirteen_storage_operations_and_its_repetition_two() -> None:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    first, second = Boundary(), Boundary()
    world.complete(world.hint(job), first)
    world.complete(world.hint(job), second)
    assert first.calls == [
        "read ledger",
        "read job",
        "read ledger",
        "list models",
        "read models",
        "write model_files",
        "write runs",
        "read ledger",
        "write index",
        "read ledger",
        "write status",
        "publish",
        "publish",
        *["list time series"] * len(MachineMetric),
        "write runs",
        "delete active",
        "list ledger",
    ]
    assert second.calls == ["read ledger", "read job", "read ledger"]


def test_the_reconciler_ends_a_run_without_a_log_entry() -> None:
    world, incoming, _ = launched()
    world.train(world.record(incoming.run_id))
    world.reconcile()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert present(present(record.completion).reported_by).by == "reconcile"


def test_an_entry_that_reports_an_end_which_the_job_never_confirms_is_acknowledged_after_four_reads() -> None:
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.RUNNING)
    boundary = Boundary()
    result = world.complete(world.hint(job), boundary)
    assert "the next tick reads it" in result.message
    assert boundary.calls.count("read job") == 1 + len(PAUSES_S)
    assert world.record(incoming.run_id).state is RunState.RUNNING


@pytest.mark.parametrize("reads", range(1, len(PAUSES_S) + 1))
def test_an_end_that_the_job_confirms_seconds_after_its_log_ends_the_run_at_once(reads: int) -> None:
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.RUNNING)
    late = only_at(reads + 1, lambda: world.train_job(job))
    world.complete(world.hint(job), At("read job", before=late))
    assert world.record(incoming.run_id).state is RunState.SUCCEEDED


def test_a_failure_without_a_reason_is_given_time_for_one() -> None:
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.FAILED)
    with pytest.raises(ReasonPending):
        world.complete(world.hint(job))
    world.clock.advance(timedelta(minutes=2))
    world.complete(world.hint(job))
    record = world.record(incoming.run_id)
    assert record.state is RunState.FAILED
    assert "gives no reason" in present(record.failure).message


def test_the_model_path_never_comes_from_the_log() -> None:
    world, incoming, job = launched()
    world.train(world.record(incoming.run_id))
    forged = json.dumps({"event": "model_exported", "model_path": "gs://evil/model/"})
    world.complete(replace(world.hint(job), insert_id=forged))
    record = world.record(incoming.run_id)
    assert present(record.model).uri.startswith("gs://models/")


def test_an_entry_about_no_job_of_ours_changes_nothing() -> None:
    world, incoming, job = launched()
    before = world.record(incoming.run_id)
    stranger = replace(job, name="projects/my-project/locations/us-central1/customJobs/4711")
    world.complete(world.hint(stranger))
    assert world.record(incoming.run_id) == before


def test_a_finished_job_that_forged_our_label_ends_nothing() -> None:
    world, incoming, _ = launched()
    before = world.record(incoming.run_id)
    forged = world.jobs.submit(labelled(incoming.run_id, present(before.output_uri)))
    world.jobs.become(forged.name, JobState.SUCCEEDED)
    assert world.complete(world.hint(forged)).severity == "DEBUG"
    assert world.record(incoming.run_id) == before
    world.ledger.mark_job(forged.name)  # as a function does whose submission came too late
    result = world.complete(world.hint(forged))
    assert result.severity == "WARNING"
    after = world.record(incoming.run_id)
    (problem,) = after.problems  # it may have written to the run's directory
    assert problem.startswith(f"a second job was found, {forged.name}: it had already ended")
    assert after.submission.second_jobs == (forged.name,)
    unchanged = {
        "problems": (),
        "submission": before.submission,
        "attempt": before.attempt,
        "updated_at": before.updated_at,
    }
    assert replace(after, **unchanged) == before  # type: ignore[arg-type]  # of four fields


def test_a_job_deleted_while_its_run_went_on_fails_the_run() -> None:
    world, incoming, job = launched()
    world.jobs.remove(job.name)
    world.reconcile()
    assert world.record(incoming.run_id).state is RunState.SUBMITTED
    world.reconcile_after(VANISHED_AGE)
    record = world.record(incoming.run_id)
    assert record.state is RunState.FAILED
    assert "no longer exists" in present(record.failure).message


def test_a_marker_without_a_record_is_removed_once_its_event_can_come_no_more(world: World) -> None:
    world.ledger.mark_active("orphan-20260301t120000-0123456789")
    world.reconcile()
    assert world.active() == ["orphan-20260301t120000-0123456789"]
    world.reconcile_after(ORPHAN_AGE)
    assert world.active() == []


EVENTS = ("upload", "upload", "export entry", "end entry", "end entry", "reconcile", "pause")


@settings(deadline=None, max_examples=80)
@given(
    order=st.permutations(EVENTS), dies_at=st.integers(0, 30), after=st.booleans(), victim=st.integers(0, 6)
)
def test_any_order_of_events_with_a_crash_among_them_ends_in_the_same_record(
    order: list[str], dies_at: int, after: bool, victim: int
) -> None:
    """The job trains as soon as it is created; the events about it arrive in any order."""
    world = World()
    incoming = world.drop()

    def deliver(event: str, boundary: Boundary) -> None:
        jobs = world.jobs.of_run(incoming.run_id, JobKind.CUSTOM, [REGION])
        match event:
            case "upload":
                world.launch(incoming, boundary)
            case "reconcile":
                world.reconcile(boundary)
            case "pause":
                world.clock.advance(LEASE)
            case _ if jobs:
                world.complete(world.hint(jobs[0], tells_end=event == "end entry"), boundary)

    for number, event in enumerate([*order, "pause", "upload", "reconcile"]):
        boundary = Boundary(die_at=dies_at if number == victim else None, die_after_the_call=after)
        try:
            deliver(event, boundary)
        except (TrainmasterError, Killed):
            continue
        finally:
            for job in world.jobs.all():
                if job.state is JobState.PENDING:
                    world.train_job(job)
    assert len(world.jobs.all()) == 1
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert record.job is not None
    assert present(present(record.completion).durations_s)["running"] == 600.0
    assert [step.state for step in record.history] == ["reserved", "submitted", "running", "succeeded"]
    assert record.history[1].at == record.job.create_time
    assert record.history[2].at == record.job.start_time
    assert present(record.model).metrics["accuracy"] == 0.75
    assert {notice.id for notice in world.notices.published} == set(ids(incoming, *WAY))
    assert world.document("status/requests/cassava.yaml.json")["state"] == "succeeded"
    assert world.active() == []


@pytest.mark.parametrize(
    ("is_ordered", "ran_s", "reason"),
    [
        (True, 0, "its cancellation was requested at 2026-"),
        (False, 24 * 3600 - 1, "its job was cancelled outside Trainmaster. Vertex AI says: CANCELED"),
        (False, 24 * 3600, "the job ran longer than its timeout of 86400 s. Vertex AI says: CANCELED"),
    ],
)
def test_a_cancelled_run_says_why_its_job_was_cancelled(is_ordered: bool, ran_s: int, reason: str) -> None:
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.RUNNING)
    if is_ordered:
        cancel(world.services(), world.ledger.present(incoming.run_id))
    world.clock.advance(timedelta(seconds=ran_s))
    world.jobs.become(job.name, JobState.CANCELLED, error=Failure(code=1, message="CANCELED"))
    world.complete(world.hint(job, tells_end=False))
    ended = world.record(incoming.run_id)
    assert ended.state is RunState.CANCELLED
    assert present(ended.failure).message.startswith(reason)
