"""Whatever is interleaved with whatever, call by call: the record behaves as a simple model says.

Uploads, redeliveries, log entries, sweeps and cancellations go on side by side, each stopped before any of its
calls while others run; they fail, die, and come again.
"""

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

from orchestrator.adapters.memory import MemoryJobs
from orchestrator.core.launch.event import Arrival
from orchestrator.core.names import RUN_LABEL, JobKind
from orchestrator.core.run import ENDS, LEGAL_MOVES, PROGRESS, Job, JobState, RunState
from orchestrator.core.settle.outcome import END_OF
from orchestrator.flow.admission import settle_and_admit
from orchestrator.flow.launch import launch
from orchestrator.flow.orders import take_order
from orchestrator.flow.services import Services
from orchestrator.flow.sweep import sweep
from tests.contract.life.asking import FAULTY, SOUND
from tests.contract.life.stepwise import Process
from tests.contract.world import LEASE, PROJECT, World

TIMEOUT = timedelta(seconds=120)
AT_ONCE = 5
Flow = Callable[[Services], object]
NUMBERS = st.integers(min_value=0, max_value=1000)
ENDINGS = st.sampled_from([JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])


class Deployment(RuleBasedStateMachine):
    """The model: what was asked for, and how far each run has been seen to be."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.sound: dict[str, bool] = {}
        self.seen: dict[str, RunState] = {}
        self.owed: list[Flow] = []
        self.running: list[tuple[Process, Flow | None]] = []

    @rule(name=st.integers(0, 1), sound=st.booleans())
    def upload(self, name: int, sound: bool) -> None:
        asked = SOUND[9] if sound else FAULTY[2]
        arrival = self.world.drop(asked.content, f"requests/{name}-{len(self.sound)}.json")
        self.sound[arrival.run_id] = sound
        self.owed.append(partial(_launched, arrival))

    @precondition(lambda self: self.owed and len(self.running) < AT_ONCE)
    @rule(which=NUMBERS, calls=st.integers(0, 12), twice=st.booleans())
    def deliver(self, which: int, calls: int, twice: bool) -> None:
        """An event that is owed begins to be handled; or it is delivered again, though it is being handled."""
        flow = self.owed[which % len(self.owed)] if twice else self.owed.pop(which % len(self.owed))
        self._begin(flow, None if twice else flow, calls)

    @precondition(lambda self: len(self.running) < AT_ONCE)
    @rule(calls=st.integers(0, 20))
    def tick(self, calls: int) -> None:
        self._begin(lambda services: list(sweep(services)), None, calls)

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
    def a_run_has_one_job_at_most(self) -> None:
        runs = [job.labels[RUN_LABEL] for job in self.world.jobs.all()]
        assert len(runs) == len(set(runs)), runs

    @invariant()
    def records_only_go_forward_and_ends_are_the_jobs(self) -> None:
        for run_id, sound in self.sound.items():
            held = self.world.ledger.find(run_id)
            if held is None:
                assert run_id not in self.seen, f"the record of {run_id} is gone"
                continue
            state, before = held.record.state, self.seen.get(run_id)
            if before is not None and before is not state:
                assert state in LEGAL_MOVES[before], f"{before} became {state}"
                assert PROGRESS[state] > PROGRESS[before]
            self.seen[run_id] = state
            assert (state is RunState.REJECTED) is not sound
            if state in ENDS - {RunState.REJECTED}:
                assert held.record.job is not None
                assert END_OF[self.world.jobs.read(held.record.job.name).state] is state

    def teardown(self) -> None:
        """Whoever still runs dies; what is owed is delivered; jobs end; and after some sweeps all is told."""
        for process, _ in self.running:
            process.kill()
        self._answered()
        for _ in range(3):
            self.world.clock.advance(LEASE)
            for flow in [*self.owed]:
                self._begin(flow, flow, calls=1000)
                self.owed.remove(flow)
            self.world.sweep()
            for job in self.world.jobs.all():
                if job.state not in END_OF:
                    self.world.jobs.become(job.name, JobState.SUCCEEDED)
        for _ in range(3):
            self.world.clock.advance(LEASE)
            self.world.sweep()
        self.a_run_has_one_job_at_most()
        self.records_only_go_forward_and_ends_are_the_jobs()
        assert self.world.active() == []
        assert set(self.seen) == set(self.sound)
        ids = {notice.id for notice in self.world.notices.published}
        for run_id, state in self.seen.items():
            assert state in ENDS, f"{run_id} is {state}"
            steps = self.world.record(run_id).history
            assert {f"{run_id}/{step.state}" for step in steps} <= ids
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

    def _job(self, which: int) -> Job:
        jobs = self.world.jobs.all()
        return jobs[which % len(jobs)]


class BlindJobs(MemoryJobs):
    """A listing that never shows anything."""

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return super().of_run(f"not {run_id}", kind, regions)


class BlindDeployment(Deployment):
    """Whoever takes a run over finds no job and submits another."""

    def __init__(self) -> None:
        super().__init__()
        self.world.jobs = BlindJobs(self.world.clock, project=PROJECT)

    def teardown(self) -> None:
        for process, _ in self.running:
            process.kill()


def _launched(arrival: Arrival, services: Services) -> object:
    return launch(services, arrival, take_order)


def _settled(world: World, job: Job, services: Services) -> object:
    return list(settle_and_admit(services, world.hint(job)))


TestDeployment = Deployment.TestCase
QUICK = settings(
    max_examples=400, stateful_step_count=40, deadline=None, database=None, phases=[Phase.generate]
)


def test_a_second_job_would_be_found() -> None:
    with pytest.raises(AssertionError, match="run-"):
        run_state_machine_as_test(BlindDeployment, settings=QUICK)


TestDeployment.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)
