"""A failed run's record, status and notice say why its job failed, from the job's log if that can be read."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract.boundaries import At, raising
from tests.contract.schemas import NOTICE, RECORD
from tests.contract.test_complete import launched
from tests.contract.test_tuning import launched as launched_tuning
from tests.contract.test_tuning import trial
from tests.contract.world import START, Boundary, Killed, World
from tests.memory import MemoryJobLogs
from trainmaster.orchestrator.core.completion.explanation import (
    LOG_DELAY,
    TRIALS_EXPLAINED,
    LogEntry,
    LogQuery,
)
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.core.notices.notice import cloud_event
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState, Trial, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.submission.resume import cancel

CHIEF = "workerpool0-0"
WORDS = f"The replica {CHIEF} exited with a non-zero status of 1."
LINK = " To find out more about why your job exited please check the logs: https://console.test/logs?a=b%2Fc"
TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/app/train.py", line 7, in <module>',
    "ValueError: no data",
)
USAGE = ("usage: train.py [-h]", "train.py: error: unrecognized arguments: --num_units=64")
DENIED = AccessDenied("Cloud Logging", "read the log of job 1000", "logging.logEntries.list")
DOWN = ServiceFailed("Cloud Logging", "read the log of job 1000", "503")
STATUS = "status/requests/cassava.yaml.json"


def job_id(job: Job) -> str:
    return job.name.rpartition("/")[2]


def failed() -> tuple[World, str, Job]:
    """A run whose job has failed, before any event reports the failure."""
    world, incoming, job = launched()
    world.jobs.become(job.name, JobState.RUNNING)
    world.jobs.become(job.name, JobState.FAILED, error=Failure(code=3, message=WORDS + LINK))
    return world, incoming.run_id, job


def ends_told(world: World) -> list[Mapping[str, object]]:
    return [notice.data for notice in world.notices.published if notice.type == "trainmaster.run.failed.v1"]


def assert_explained(world: World, run_id: str) -> None:
    """Record, status and notice name the replica, its error and its last lines."""
    record = world.record(run_id)
    message = f"{CHIEF}: ValueError: no data. {WORDS}"
    assert record.failure == Failure(code=3, message=message, replica=CHIEF, last_lines=TRACEBACK)
    assert record.problems == ()
    RECORD.validate(encoded(record))
    assert world.document(STATUS)["reason"] == message
    assert ends_told(world)
    assert all(each["error"] == encoded(record.failure) for each in ends_told(world))
    for notice in world.notices.published:
        NOTICE.validate(cloud_event(notice, "//trainmaster/projects/p/locations/l"))
    assert world.active() == []


def test_a_failed_run_says_which_replica_failed_first_and_with_what() -> None:
    world, run_id, job = failed()
    world.job_logs.write(job_id(job), CHIEF, *TRACEBACK)
    boundary = Boundary()
    world.complete(world.hint(job), boundary)
    assert_explained(world, run_id)
    assert boundary.calls.count("read log") == 1
    assert boundary.calls.count("write runs") == 3
    assert boundary.calls.count("write status") == 1


def test_a_job_that_never_ran_has_no_log_to_read() -> None:
    world, incoming, job = launched()
    error = Failure(code=3, message="Image 'p/q' is not found.")
    world.jobs.become(job.name, JobState.FAILED, error=error, ran=False)
    boundary = Boundary()
    world.complete(world.hint(job), boundary)
    assert "read log" not in boundary.calls
    assert world.record(incoming.run_id).failure == error


def test_a_failure_that_the_log_does_not_explain_keeps_the_services_message_without_waiting() -> None:
    world, run_id, job = failed()
    world.complete(world.hint(job))
    record = world.record(run_id)
    assert (record.failure, record.problems) == (Failure(code=3, message=WORDS), ())
    assert len(ends_told(world)) == 1
    assert world.active() == []


def test_a_deployment_that_may_not_read_logs_says_what_to_grant_and_delays_nothing() -> None:
    world, run_id, job = failed()
    world.complete(world.hint(job), At("read log", before=raising(DENIED)))
    record = world.record(run_id)
    assert (record.state, record.failure) == (RunState.FAILED, Failure(code=3, message=WORDS))
    (problem,) = record.problems
    assert problem == (
        "the job's log does not say why the job failed: Cloud Logging does not let this deployment read "
        "the log of job 1000: logging.logEntries.list is not granted; `trainmaster deploy` grants it"
    )
    assert world.document(STATUS)["problems"] == [problem]
    assert len(ends_told(world)) == 1
    assert world.active() == []


def test_a_log_that_arrives_late_is_read_again_and_only_the_notice_waits() -> None:
    world, run_id, job = failed()
    world.job_logs.write(job_id(job), CHIEF)
    result = world.complete(world.hint(job))
    assert result.made_room
    assert "step 'reason' has not finished: the job's log: it showed no reason within 120 s" in result.message
    assert world.record(run_id).state is RunState.FAILED
    assert (
        world.document(STATUS)["reason"]
        == f"{WORDS} (the reason will appear here once its log has been read)"
    )
    assert ends_told(world) == []
    world.clock.advance(LOG_DELAY / 2)
    world.reconcile()
    assert ends_told(world) == []
    world.job_logs.write(job_id(job), CHIEF, *TRACEBACK)
    world.reconcile()
    assert_explained(world, run_id)
    assert len(ends_told(world)) == 1


@pytest.mark.parametrize("boundary", [None, At("read log", before=raising(DOWN))], ids=["silent", "down"])
def test_a_log_that_does_not_come_is_waited_for_two_minutes(boundary: Boundary | None) -> None:
    world, run_id, job = failed()
    world.job_logs.write(job_id(job), CHIEF)
    world.complete(world.hint(job), boundary)
    world.clock.advance(LOG_DELAY)
    world.reconcile(boundary)
    record = world.record(run_id)
    assert record.failure == Failure(code=3, message=WORDS)
    (problem,) = record.problems
    assert problem.startswith("the job's log does not say why the job failed: ")
    assert ("503" in problem) == (boundary is not None)
    assert world.document(STATUS)["reason"] == WORDS
    assert len(ends_told(world)) == 1
    assert world.active() == []


@pytest.mark.parametrize("late", [False, True], ids=["there", "late"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(18))
def test_a_crash_at_any_call_loses_no_reason(number: int, *, after: bool, late: bool) -> None:
    world, run_id, job = failed()
    world.job_logs.write(job_id(job), CHIEF, *(() if late else TRACEBACK))
    boundary = Boundary(die_at=number, die_after_the_call=after)
    with suppress(Killed):
        world.complete(world.hint(job), boundary)
    if late:
        world.job_logs.write(job_id(job), CHIEF, *TRACEBACK)
    world.complete(world.hint(job))
    world.reconcile()
    assert_explained(world, run_id)


class Flooded(MemoryJobLogs):
    """A log so long that only a query for the chief alone finds its lines."""

    def read(self, query: LogQuery) -> Sequence[LogEntry]:
        return [each for each in super().read(query) if query.replica or each.task != CHIEF]


def test_where_peers_fill_the_log_the_replica_that_the_service_names_is_read_alone() -> None:
    world, run_id, job = failed()

    world.job_logs = Flooded(world.clock)
    world.job_logs.write(job_id(job), CHIEF, *TRACEBACK)
    world.job_logs.write(job_id(job), "workerpool1-0", "Aborted: a peer is lost")
    world.complete(world.hint(job))
    assert_explained(world, run_id)


def tuned(
    state: JobState, trials: list[Trial], *, refused: int, words: str = "Too many trials failed."
) -> tuple[World, RunRecord, Boundary]:
    """The completed run of a tuning with these trials, the first of which refused their arguments."""
    world, incoming, job = launched_tuning()
    world.try_out(world.record(incoming.run_id), state, trials)
    job = world.jobs.read(job.name)
    error = Failure(code=3, message=words) if state is JobState.FAILED else None
    world.jobs.become(job.name, state, error=error)
    for number in range(1, refused + 1):
        world.job_logs.write(job_id(job), CHIEF, *USAGE, trial_id=str(number))
    boundary = Boundary()
    world.complete(world.hint(job), boundary)
    record = world.record(incoming.run_id)
    RECORD.validate(encoded(record))
    return world, record, boundary


def infeasible(number: int, reason: str = "") -> Trial:
    ended = START + timedelta(minutes=number)
    state = TrialState.INFEASIBLE
    return replace(trial(number, None, state), start_time=START, end_time=ended, infeasible_reason=reason)


def test_a_trial_that_refused_its_arguments_is_reported_as_that_and_not_as_a_missing_metric() -> None:
    words = f"The replica {CHIEF} exited with a non-zero status of 2."
    reason = words + LINK
    _, record, _ = tuned(JobState.FAILED, [infeasible(1, reason), infeasible(2, reason)], refused=2)
    told = f"the program rejected its arguments: {USAGE[-1]}"
    assert record.tuning is not None
    for each in record.tuning.trials:
        assert each.infeasible_reason == words
        assert each.failure == Failure(message=told, replica=CHIEF, last_lines=USAGE)
    assert record.failure == Failure(
        code=3,
        message=f"2 of 2 trials are infeasible; the first, trial 1, {CHIEF}: {told}. Too many trials failed.",
        replica=CHIEF,
        last_lines=USAGE,
    )
    (problem,) = record.problems
    assert problem.startswith("no trial is best: none reported 'accuracy' (2 infeasible)")


def test_reason_and_problem_of_a_tuning_count_alike_and_quote_the_trial_that_ended_first() -> None:
    """Trials end in another order than that of their ids; the service does not say which of them it cancelled."""
    reason = f"The replica {CHIEF} exited with a non-zero status of 2."
    third = replace(infeasible(3, reason), end_time=START)
    cancelled = [infeasible(number, "The trial's job was cancelled.") for number in (1, 2)]
    trials = [*cancelled, third, infeasible(4, reason)]
    _, record, _ = tuned(JobState.FAILED, trials, refused=4, words="Internal error occurred.")
    assert record.failure is not None
    cause = f"trial 3, {CHIEF}: the program rejected its arguments: {USAGE[-1]}"
    told = f"4 of 4 trials are infeasible; the first, {cause}. Internal error occurred."
    assert record.failure.message == told
    (problem,) = record.problems
    assert problem.startswith("no trial is best: none reported 'accuracy' (4 infeasible)")


def test_a_trial_without_an_error_in_its_log_is_quoted_with_the_services_reason() -> None:
    missing = "The trial ended without reporting the metric 'accuracy'; it reported no metric."
    first = replace(infeasible(2, missing), end_time=START)
    _, record, _ = tuned(JobState.FAILED, [infeasible(1), first], refused=1)
    assert record.failure is not None
    told = f"2 of 2 trials are infeasible; the first, trial 2: {missing} Too many trials failed."
    assert record.failure.message == told


def test_of_many_infeasible_trials_the_logs_of_the_first_are_read() -> None:
    missing = "The trial ended without reporting the metric 'accuracy'; it reported no metric."
    trials = [infeasible(number) for number in range(1, 7)] + [infeasible(7, missing)]
    _, record, boundary = tuned(JobState.FAILED, trials, refused=7)
    assert record.tuning is not None
    assert [each.id for each in record.tuning.trials if each.failure] == ["1", "2", "3"]
    assert boundary.calls.count("read log") == TRIALS_EXPLAINED
    assert record.tuning.trials[-1].infeasible_reason == missing


def test_trials_that_ended_after_the_cancellation_was_requested_have_no_log_read() -> None:
    world, incoming, job = launched_tuning()
    cancel(world.services(), world.ledger.present(incoming.run_id))
    late = replace(infeasible(1), end_time=world.clock.now() + timedelta(seconds=1))
    world.try_out(world.record(incoming.run_id), JobState.CANCELLED, [late])
    boundary = Boundary()
    world.complete(world.hint(job), boundary)
    assert world.record(incoming.run_id).state is RunState.CANCELLED
    assert "read log" not in boundary.calls


def test_a_tuning_that_succeeded_says_why_some_trials_failed_and_waits_for_no_log() -> None:
    world, record, boundary = tuned(JobState.SUCCEEDED, [infeasible(1), trial(2, 0.9)], refused=1)
    assert record.tuning is not None
    first, second = record.tuning.trials
    assert first.failure is not None
    assert (first.failure.replica, second.failure, record.failure) == (CHIEF, None, None)
    assert world.active() == []
    assert boundary.calls.count("read log") == 1
    world, record, _ = tuned(JobState.SUCCEEDED, [infeasible(1), trial(2, 0.9)], refused=0)
    assert record.problems == ()
    assert world.active() == []
