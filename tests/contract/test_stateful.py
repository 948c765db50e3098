"""Whatever is interleaved with whatever, call by call: the record behaves as a simple model says.

Uploads, redeliveries, log entries, reconcile passes, cancellations and orders to end a run go on side by side, each stopped before any of its
calls while others run; they fail, die, and come again. The service has room or none, or asks for fewer requests;
jobs find no capacity; and no more than AT_ONCE_MAX may go on at a time.
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

from tests.contract.life.asking import FAULTY, SOUND
from tests.contract.life.guarantees import entered_ids
from tests.contract.life.service import DEFERRALS, deferred
from tests.contract.life.stepwise import Process
from tests.contract.rooms import NO_CAPACITY
from tests.contract.world import LEASE, PROJECT, World, request_rules_with
from trainmaster.orchestrator.adapters.memory import MemoryJobs
from trainmaster.orchestrator.core.admission.waiting import WAIT_MOST
from trainmaster.orchestrator.core.completion.outcome import stockout_of
from trainmaster.orchestrator.core.names import RUN_LABEL, JobKind
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.states import END_OF, ENDS, LEGAL_MOVES, OVER, PROGRESS, RunState
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.reconcile import reconcile
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.flows.submission.queue_pass import complete_and_admit

TIMEOUT = timedelta(seconds=120)
AT_ONCE = 5
AT_ONCE_MAX = 2
LIMITED = request_rules_with(admission=Admission(limits=(Limit(jobs=AT_ONCE_MAX),)))
Flow = Callable[[Services], object]
NUMBERS = st.integers(min_value=0, max_value=1000)
ENDINGS = st.sampled_from([JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])


class MoodyJobs(MemoryJobs):
    """A JobService that takes every job, or defers each with the answer of that name."""

    answer: str | None = None

    def submit(self, submission: Submission) -> Job:
        if self.answer is not None:
            raise deferred(self.answer)
        return super().submit(submission)


class Deployment(RuleBasedStateMachine):
    """The model: what was asked for, and how far each run has been seen to be."""

    service: type[MoodyJobs] = MoodyJobs
    request_rules = LIMITED
    at_once_max = AT_ONCE_MAX

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.request_rules)
        self.world.jobs = self.jobs = self.service(self.world.clock, project=PROJECT)
        self.sound: dict[str, bool] = {}
        self.seen: dict[str, tuple[int, RunState]] = {}
        self.to_end: list[str] = []
        self.owed: list[Flow] = []
        self.running: list[tuple[Process, Flow | None]] = []

    @rule(which=st.sampled_from([None, 9, 2, 1, 11]))
    def upload(self, which: int | None) -> None:
        """Faulty, or of one of several priorities, some with fallbacks."""
        sound = which is not None
        asked = FAULTY[2] if which is None else SOUND[which]
        incoming = self.world.drop(asked.content, f"requests/{len(self.sound)}.json")
        self.sound[incoming.run_id] = sound
        self.owed.append(partial(_launched, incoming))

    @precondition(lambda self: self.seen)
    @rule(which=NUMBERS)
    def order_to_end(self, which: int) -> None:
        """Somebody wants a run on record to end, however far it is."""
        run_id = [*self.seen][which % len(self.seen)]
        order = json.dumps({"cancel": {"run": run_id}}).encode()
        incoming = self.world.drop(order, f"requests/end-{len(self.to_end)}.json")
        self.owed.append(partial(self._ended_by, run_id, incoming))
        self.to_end.append(run_id)

    @precondition(lambda self: self.owed and len(self.running) < AT_ONCE)
    @rule(which=NUMBERS, calls=st.integers(0, 12), twice=st.booleans())
    def deliver(self, which: int, calls: int, twice: bool) -> None:
        """An event that is owed begins to be handled; or it is delivered again, though it is being handled."""
        flow = self.owed[which % len(self.owed)] if twice else self.owed.pop(which % len(self.owed))
        self._begin(flow, None if twice else flow, calls)

    @precondition(lambda self: len(self.running) < AT_ONCE)
    @rule(calls=st.integers(0, 20))
    def tick(self, calls: int) -> None:
        self._begin(lambda services: list(reconcile(services)), None, calls)

    @precondition(lambda self: self.running)
    @rule(which=NUMBERS, calls=st.integers(1, 6), fails=st.sampled_from([None, None, None, False, True]))
    def go_on(self, which: int, calls: int, fails: bool | None) -> None:
        process, _ = self.running[which % len(self.running)]
        process.go_on(calls, fails)
        self._answered()

    @precondition(lambda self: self.running)
    @rule(which=NUMBERS)
    def kill(self, which: int) -> None:
        self.running[which % len(self.running)][0].kill()
        self._answered()

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS)
    def job_starts(self, which: int) -> None:
        job = self._job(which)
        if job.state is JobState.PENDING:
            self.world.jobs.become(job.name, JobState.RUNNING)

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS, state=ENDINGS, told=st.booleans())
    def job_ends(self, which: int, state: JobState, told: bool) -> None:
        """By itself, or cancelled by a user; the log may be late or may never come."""
        job = self._job(which)
        if job.state not in END_OF:
            self.world.jobs.become(job.name, state)
            if told:
                self.owed.append(partial(_settled, self.world, job))

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS)
    def forged_entry(self, which: int) -> None:
        """Somebody writes into the log that a job has ended."""
        self.owed.append(partial(_settled, self.world, self._job(which)))

    @rule(seconds=st.sampled_from([1, 20, 61, 100, 200]))
    def time_passes(self, seconds: int) -> None:
        """A function is ended at its timeout, wherever it is."""
        then = self.world.clock.now() + timedelta(seconds=seconds)
        for process, _ in self.running:
            if then - process.began_at > TIMEOUT:
                process.kill()
        self._answered()
        self.world.clock.advance(timedelta(seconds=seconds))

    @invariant()
    def a_run_has_one_job_at_most_that_found_capacity(self) -> None:
        runs = self._runs_with_capacity()
        assert len(runs) == len(set(runs)), runs

    @invariant()
    def no_more_jobs_go_on_than_the_limit_allows(self) -> None:
        assert len(self.world.jobs.going()) <= self.at_once_max

    @invariant()
    def records_only_go_forward_and_ends_are_the_jobs(self) -> None:
        for run_id, sound in self.sound.items():
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
            assert (state is RunState.REJECTED) is not sound
            if state is RunState.CANCELLED and held.record.job is None:
                assert run_id in self.to_end
                assert run_id not in self._runs_with_capacity()
            elif state in ENDS - {RunState.REJECTED}:
                assert held.record.job is not None
                assert END_OF[self.world.jobs.read(held.record.job.name).state] is state

    def teardown(self) -> None:
        """Whoever still runs dies; what is owed is delivered; jobs end; and after some reconcile passes all is told."""
        for process, _ in self.running:
            process.kill()
        self._answered()
        self.jobs.answer = None
        for _ in range(4 + len(self.sound)):
            self.world.clock.advance(WAIT_MOST)
            for flow in [*self.owed]:
                self._begin(flow, flow, calls=1000)
                self.owed.remove(flow)
            self.world.reconcile()
            self.no_more_jobs_go_on_than_the_limit_allows()
            for job in self.world.jobs.going():
                self.world.jobs.become(job.name, JobState.SUCCEEDED)
        for _ in range(3):
            self.world.clock.advance(LEASE)
            self.world.reconcile()
        self.a_run_has_one_job_at_most_that_found_capacity()
        self.records_only_go_forward_and_ends_are_the_jobs()
        assert self.world.active() == []
        assert set(self.seen) == set(self.sound)
        ids = {notice.id for notice in self.world.notices.published}
        assert list(self.world.services().queue.places()) == []
        for run_id, (_, state) in self.seen.items():
            assert state in ENDS, f"{run_id} is {state}"
            assert {f"{run_id}/{each}" for each in entered_ids(self.world.record(run_id))} <= ids
            assert {f"{run_id}/{end}" for end in ENDS} & ids == {f"{run_id}/{state}"}

    def _begin(self, flow: Flow, owed: Flow | None, calls: int) -> None:
        process = Process(self.world, flow)
        process.go_on(calls)
        self.running.append((process, owed))
        self._answered()

    def _answered(self) -> None:
        """Take the ended processes away; what was not acknowledged is owed again."""
        self.owed += [
            owed for process, owed in self.running if process.acknowledged is False and owed is not None
        ]
        self.running = [(process, owed) for process, owed in self.running if process.acknowledged is None]

    def _ended_by(self, run_id: str, incoming: IncomingDocument, services: Services) -> object:
        """The order is carried out; once it is acknowledged, nothing goes on."""
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
    """Now and then there is no room, too many requests were made, or a job finds no capacity."""

    @rule(answer=st.sampled_from([None, None, *DEFERRALS]))
    def room_changes(self, answer: str | None) -> None:
        self.jobs.answer = answer

    @precondition(lambda self: self.world.jobs.all())
    @rule(which=NUMBERS, told=st.booleans())
    def job_finds_no_capacity(self, which: int, told: bool) -> None:
        job = self._job(which)
        if job.state is JobState.PENDING:
            self.world.jobs.become(job.name, JobState.FAILED, error=NO_CAPACITY, ran=False)
            if told:
                self.owed.append(partial(_settled, self.world, job))


class BlindJobs(MoodyJobs):
    """A listing that never shows anything."""

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return super().of_run(f"not {run_id}", kind, regions)


class BlindDeployment(Deployment):
    """Whoever takes a run over finds no job and submits another."""

    service = BlindJobs
    at_once_max = 1000
    request_rules = request_rules_with(
        admission=Admission()
    )  # fewer calls come before a submission, so that more deaths come after it

    def teardown(self) -> None:
        for process, _ in self.running:
            process.kill()


def _launched(incoming: IncomingDocument, services: Services) -> object:
    return list(take_and_admit(services, incoming))


def _settled(world: World, job: Job, services: Services) -> object:
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


def test_a_second_job_would_be_found() -> None:
    with pytest.raises(AssertionError, match="run-"):
        run_state_machine_as_test(BlindDeployment, settings=SEARCH)


TestDeployment.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
