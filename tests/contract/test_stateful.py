"""Deliveries interleaved call by call in any order: each record behaves as a simple model predicts.

Uploads, redeliveries, log entries, reconcile passes, cancellations and orders to cancel run concurrently. Each may
pause before any call while others run, fail, crash and be redelivered. The service may lack quota or limit the
rate of requests, jobs may find no capacity, and at most JOBS_AT_ONCE jobs may be active.
"""

import json
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.contract.index import index_violations
from tests.contract.rooms import NO_CAPACITY
from tests.contract.simulation.guarantees import notice_ids
from tests.contract.simulation.process import Process
from tests.contract.simulation.requests import INVALID, VALID
from tests.contract.simulation.service import DEFERRALS, deferred
from tests.contract.world import LEASE, PROJECT, World, request_rules_with
from trainmaster.orchestrator.adapters.memory import MemoryJobs
from trainmaster.orchestrator.core.admission.waiting import WAIT_MOST
from trainmaster.orchestrator.core.completion.outcome import stockout_of
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.states import END_OF, ENDS, LEGAL_MOVES, OVER, PROGRESS, RunState
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.flows.submission.queue_pass import complete_and_admit

TIMEOUT = timedelta(seconds=120)
PROCESSES_AT_ONCE = 5
JOBS_AT_ONCE = 2
LIMITED = request_rules_with(admission=Admission(limits=(Limit(jobs=JOBS_AT_ONCE),)))
Flow = Callable[[Services], object]
NUMBERS = st.integers(min_value=0, max_value=1000)
ENDINGS = st.sampled_from([JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])


class DeferringJobs(MemoryJobs):
    """A job service that accepts every job, or defers each with the named answer."""

    answer: str | None = None

    def submit(self, submission: Submission) -> Job:
        if self.answer is not None:
            raise deferred(self.answer)
        return super().submit(submission)


class Deployment(RuleBasedStateMachine):
    """The model: the requests, and the furthest state seen of each run."""

    service: type[DeferringJobs] = DeferringJobs
    request_rules = LIMITED
    at_once_max = JOBS_AT_ONCE

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.request_rules)
        self.world.jobs = self.jobs = self.service(self.world.clock, project=PROJECT)
        self.valid: dict[str, bool] = {}
        self.seen: dict[str, tuple[int, RunState]] = {}
        self.to_cancel: list[str] = []
        self.pending: list[Flow] = []
        self.running: list[tuple[Process, Flow | None]] = []

    @rule(which=st.sampled_from([None, 9, 2, 1, 11]))
    def upload(self, which: int | None) -> None:
        """Invalid, or with one of several priorities, some with fallbacks."""
        valid = which is not None
        sample = INVALID[2] if which is None else VALID[which]
        incoming = self.world.drop(sample.content, f"requests/{len(self.valid)}.json")
        self.valid[incoming.run_id] = valid
        self.pending.append(partial(_launched, incoming))

    @precondition(lambda self: self.seen)
    @rule(which=NUMBERS)
    def order_cancellation(self, which: int) -> None:
        """A user orders a recorded run to be cancelled, whatever its state."""
        run_id = [*self.seen][which % len(self.seen)]
        order = json.dumps({"cancel": {"run": run_id}}).encode()
        incoming = self.world.drop(order, f"requests/end-{len(self.to_cancel)}.json")
        self.pending.append(partial(self._order_carried_out, run_id, incoming))
        self.to_cancel.append(run_id)

    @precondition(lambda self: self.pending and len(self.running) < PROCESSES_AT_ONCE)
    @rule(which=NUMBERS, calls=st.integers(0, 12), twice=st.booleans())
    def deliver(self, which: int, calls: int, twice: bool) -> None:
        """Deliver a pending event; with `twice` it stays pending, so that it is delivered again meanwhile."""
        flow = (
            self.pending[which % len(self.pending)] if twice else self.pending.pop(which % len(self.pending))
        )
        self._begin(flow, None if twice else flow, calls)

    @precondition(lambda self: len(self.running) < PROCESSES_AT_ONCE)
    @rule(calls=st.integers(0, 20))
    def tick(self, calls: int) -> None:
        self._begin(lambda services: list(take_tick(services)), None, calls)

    @precondition(lambda self: self.running)
    @rule(which=NUMBERS, calls=st.integers(1, 6), fails=st.sampled_from([None, None, None, False, True]))
    def advance(self, which: int, calls: int, fails: bool | None) -> None:
        process, _ = self.running[which % len(self.running)]
        process.advance(calls, fails)
        self._collect_ended()

    @precondition(lambda self: self.running)
    @rule(which=NUMBERS)
    def kill(self, which: int) -> None:
        self.running[which % len(self.running)][0].kill()
        self._collect_ended()

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS)
    def job_starts(self, which: int) -> None:
        job = self._job(which)
        if job.state is JobState.PENDING:
            self.world.jobs.become(job.name, JobState.RUNNING)

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS, state=ENDINGS, logged=st.booleans())
    def job_ends(self, which: int, state: JobState, logged: bool) -> None:
        """By itself, or cancelled by a user; the log entry may be late or missing."""
        job = self._job(which)
        if job.state not in END_OF:
            self.world.jobs.become(job.name, state)
            if logged:
                self.pending.append(partial(_completed, self.world, job))

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS)
    def forged_entry(self, which: int) -> None:
        """A forged log entry says that a job has ended."""
        self.pending.append(partial(_completed, self.world, self._job(which)))

    @rule(seconds=st.sampled_from([1, 20, 61, 100, 200]))
    def time_passes(self, seconds: int) -> None:
        """A function is stopped at its timeout, at whatever call."""
        then = self.world.clock.now() + timedelta(seconds=seconds)
        for process, _ in self.running:
            if then - process.began_at > TIMEOUT:
                process.kill()
        self._collect_ended()
        self.world.clock.advance(timedelta(seconds=seconds))

    @invariant()
    def a_run_has_at_most_one_job_that_found_capacity(self) -> None:
        runs = self._runs_with_capacity()
        assert len(runs) == len(set(runs)), runs

    @invariant()
    def no_more_jobs_are_active_than_the_limit_allows(self) -> None:
        assert len(self.world.jobs.going()) <= self.at_once_max

    @invariant()
    def records_only_move_forward_and_end_as_their_jobs_do(self) -> None:
        for run_id, valid in self.valid.items():
            held = self.world.ledger.find(run_id)
            if held is None:
                assert run_id not in self.seen, f"the record of {run_id} is gone"
                continue
            state, round_number = held.record.state, held.record.round
            before_round, before = self.seen.get(run_id, (0, RunState.RESERVED))
            assert (round_number, PROGRESS[state]) >= (before_round, PROGRESS[before])
            if before is not state and round_number == before_round and run_id in self.seen:
                assert state in LEGAL_MOVES[before], f"{before} became {state}"
            self.seen[run_id] = round_number, state
            assert (state is RunState.REJECTED) is not valid
            if state is RunState.CANCELLED and held.record.job is None:
                assert run_id in self.to_cancel
                assert run_id not in self._runs_with_capacity()
            elif state in ENDS - {RunState.REJECTED}:
                assert held.record.job is not None
                assert END_OF[self.world.jobs.read(held.record.job.name).state] is state

    def teardown(self) -> None:
        """Kill the processes, deliver pending events, end the jobs, reconcile; then every end must be announced."""
        for process, _ in self.running:
            process.kill()
        self._collect_ended()
        self.jobs.answer = None
        for _ in range(4 + len(self.valid)):
            self.world.clock.advance(WAIT_MOST)
            for flow in [*self.pending]:
                self._begin(flow, flow, calls=1000)
                self.pending.remove(flow)
            self.world.reconcile()
            self.no_more_jobs_are_active_than_the_limit_allows()
            for job in self.world.jobs.going():
                self.world.jobs.become(job.name, JobState.SUCCEEDED)
        for _ in range(3):
            self.world.clock.advance(LEASE)
            self.world.reconcile()
        self.a_run_has_at_most_one_job_that_found_capacity()
        self.records_only_move_forward_and_end_as_their_jobs_do()
        assert self.world.active() == []
        assert set(self.seen) == set(self.valid)
        ids = {notice.id for notice in self.world.notices.published}
        assert list(self.world.services().queue.places().places) == []
        for run_id, (_, state) in self.seen.items():
            assert state in ENDS, f"{run_id} is {state}"
            assert {f"{run_id}/{each}" for each in notice_ids(self.world.record(run_id))} <= ids
            assert {f"{run_id}/{end}" for end in ENDS} & ids == {f"{run_id}/{state}"}
        assert list(index_violations(self.world, list(map(self.world.record, self.seen)))) == []

    def _begin(self, flow: Flow, pending: Flow | None, calls: int) -> None:
        process = Process(self.world, flow)
        process.advance(calls)
        self.running.append((process, pending))
        self._collect_ended()

    def _collect_ended(self) -> None:
        """Remove the ended processes; unacknowledged events are pending again."""
        self.pending += [
            pending
            for process, pending in self.running
            if process.acknowledged is False and pending is not None
        ]
        self.running = [
            (process, pending) for process, pending in self.running if process.acknowledged is None
        ]

    def _order_carried_out(self, run_id: str, incoming: IncomingDocument, services: Services) -> object:
        """Carry out the order; once it is acknowledged, neither the run nor its job is active."""
        done = _launched(incoming, services)
        record = self.world.record(run_id)
        if not record.ended:
            assert record.job is not None
            assert self.world.jobs.read(record.job.name).state in OVER
        return done

    def _runs_with_capacity(self) -> list[str]:
        """The run of each job, except of those that ended because there was no capacity."""
        return [job.labels[RUN_LABEL] for job in self.world.jobs.all() if stockout_of(job) is None]

    def _job(self, which: int) -> Job:
        jobs = self.world.jobs.all()
        return jobs[which % len(jobs)]


class ScarceDeployment(Deployment):
    """Now and then quota is short, the request rate is limited, or a job finds no capacity."""

    @rule(answer=st.sampled_from([None, None, *DEFERRALS]))
    def room_changes(self, answer: str | None) -> None:
        self.jobs.answer = answer

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS, logged=st.booleans())
    def job_finds_no_capacity(self, which: int, logged: bool) -> None:
        job = self._job(which)
        if job.state is JobState.PENDING:
            self.world.jobs.become(job.name, JobState.FAILED, error=NO_CAPACITY, ran=False)
            if logged:
                self.pending.append(partial(_completed, self.world, job))


class NeverListedJobs(DeferringJobs):
    """Jobs that are never listed."""

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return super().of_run(f"not {run_id}", kind, regions)


class NeverListedDeployment(Deployment):
    """A process that takes a run over finds no job and submits another."""

    service = NeverListedJobs
    at_once_max = 1000
    request_rules = request_rules_with(admission=Admission())
    """Without limits fewer calls precede a submission, so that more crashes follow it."""

    def teardown(self) -> None:
        for process, _ in self.running:
            process.kill()


def _launched(incoming: IncomingDocument, services: Services) -> object:
    return list(take_and_admit(services, incoming))


def _completed(world: World, job: Job, services: Services) -> object:
    return list(complete_and_admit(services, world.hint(job)))


TestDeployment = ScarceDeployment.TestCase
SEARCH = settings(
    max_examples=5000,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
)


def test_a_second_job_is_found() -> None:
    with pytest.raises(AssertionError, match="run-"):
        run_state_machine_as_test(NeverListedDeployment, settings=SEARCH)


TestDeployment.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
