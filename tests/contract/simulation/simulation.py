"""A deployment simulated on a virtual clock: requests, jobs, events that are late, repeated or lost, and crashes.

All steps happen in one order, drawn from the seed: the same seed repeats the same simulation.

Real threads and a real clock could not repeat a failure, and coroutines would have the flows written for their test.
"""

import heapq
import itertools
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random

from tests.contract.retraining import RuleWorld
from tests.contract.simulation.checks import CAPPED, LIMITED, SubmissionChecker
from tests.contract.simulation.disruptions import PAUSES, DisruptedBoundary, Disruption
from tests.contract.simulation.odds import CALLS_PER_DELIVERY, CALLS_PER_TICK, Odds
from tests.contract.simulation.service import RecordedNotices, UnreliableJobs
from tests.contract.simulation.tally import Tally
from tests.contract.world import LEASE, Killed
from tests.narrowing import present
from trainmaster.orchestrator.core.errors import JobNotFound, TrainmasterError
from trainmaster.orchestrator.core.notices.notice import Notice, cloud_event
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, parse_notice
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.queue_pass import complete_and_admit
from trainmaster.orchestrator.flows.retraining.events import take_notice
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import FlowResult, Services

FUNCTION_TIMEOUT_S = 120.0
"""As trainmaster/deploy/topology.yaml sets it; the lease lasts a minute longer."""
IN_FLIGHT_S = 20.0
"""How long a crashed process's request may be in flight. With the listing's delay it must fit between the
function's timeout and the end of its lease."""
TICK_S = 60.0
REST_S = timedelta(days=3).total_seconds()
"""Ticks continue at most this long after the last other event."""
FIRST_RETRY_S, MAX_RETRY_S = 10.0, 600.0
"""Bounds of the exponential backoff, as in Eventarc's default Pub/Sub retry policy."""


@dataclass(kw_only=True)
class Event:
    """An event. With `retried` it is redelivered until it is acknowledged."""

    kind: str
    flow: Callable[[Services], object]
    retried: bool = True
    attempts: int = 0


class Simulation:
    """The clock, the deliveries and their disruptions. `Users` and `TrainingJobs` create the events."""

    def __init__(
        self, *, seed: str, odds: Odds | None = None, jobs: type[UnreliableJobs] = UnreliableJobs
    ) -> None:
        self.random = Random(seed)
        self.odds = odds or Odds()
        self.tally = Tally()
        self.world = RuleWorld(CAPPED if self.random.random() < self.odds.capped else LIMITED)
        self.checker = SubmissionChecker(self.world, strict=not self.odds.beyond_lease)
        self.jobs = self.world.jobs = jobs(
            self.world.clock, self.random, self._created, self._before_creation, self._cancels_later
        )
        self.notices = self.world.notices = RecordedNotices(self._published)
        self.on_created: Callable[[Job], None] = lambda _: None
        self._now_s = 0.0
        self._order: Iterator[int] = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], object]]] = []

    def later(self, seconds: float, act: Callable[[], object]) -> None:
        heapq.heappush(self._agenda, (self._now_s + seconds, next(self._order), act))

    def run(self) -> None:
        """Run until no event is left and no run is active."""
        self._next_tick(0.0)
        while self._agenda:
            at_s, _, act = heapq.heappop(self._agenda)
            self.world.clock.advance(timedelta(seconds=at_s - self._now_s))
            self._now_s = at_s
            act()

    def emit(self, event: Event, *, may_be_dropped: bool) -> None:
        """Deliver the event: late, twice, out of order, or never."""
        odds, random = self.odds, self.random
        if may_be_dropped and random.random() < odds.dropped:
            self.tally.dropped[event.kind] += 1
            return
        self.later(self._delay_s(), partial(self._deliver, event))
        if random.random() < odds.duplicate:
            self.tally.duplicated[event.kind] += 1
            self.later(self._delay_s(), partial(self._deliver, event))

    def upload_or_message(self, incoming: IncomingDocument, kind: str) -> None:
        def flow(services: Services) -> object:
            return list(take_and_admit(services, incoming))

        self.emit(Event(kind=kind, flow=flow), may_be_dropped=False)

    def log_entry(self, kind: str, job: Job, *, tells_end: bool) -> None:
        number = next(self._order)
        hint = self.world.hint(job, tells_end=tells_end, insert_id=f"entry-{number}")
        self.emit(
            Event(kind=kind, flow=lambda services: list(complete_and_admit(services, hint))),
            may_be_dropped=True,
        )

    def _before_creation(self, submission: Submission) -> None:
        self.tally.violations += self.checker.violations_of(submission, self.jobs.going())

    def _created(self, job: Job) -> None:
        self.on_created(job)

    def _cancels_later(self, name: str) -> bool:
        """Draw whether a cancellation takes effect later, whatever the job does until then."""
        is_late = self.random.random() < self.odds.late_cancel
        if is_late:
            self.later(self.random.expovariate(1 / self.odds.late_cancel_s), partial(self._cancel_late, name))
        return is_late

    def _cancel_late(self, name: str) -> None:
        with suppress(JobNotFound):
            if self.jobs.read(name).state not in END_OF:
                job = self.jobs.become(name, JobState.CANCELLED, ran=False)
                self.log_entry("end entry", job, tells_end=True)

    def _published(self, notice: Notice) -> None:
        def flow(services: Services) -> object:
            parsed = parse_notice(message)
            return list(take_notice(services, parsed)) if isinstance(parsed, ParsedNotice) else None

        message = self.world.message(cloud_event(notice, "//trainmaster/simulation"))
        self.emit(Event(kind="notice", flow=flow), may_be_dropped=True)

    def _delay_s(self) -> float:
        in_flight = self.random.random() < self.odds.delayed
        return self.random.expovariate(1 / self.odds.delayed_s) if in_flight else self.random.random() * 2

    def _next_tick(self, resting_s: float) -> None:
        """Tick while other events remain, and then until no run is active."""
        resting = not self._agenda
        if resting and (resting_s >= REST_S or not self.world.active()):
            return
        pause_s = TICK_S * 10 if resting and resting_s > LEASE.total_seconds() * 10 else TICK_S
        self.later(pause_s, partial(self._tick, resting_s + pause_s if resting else 0.0))

    def _tick(self, resting_s: float) -> None:
        def flow(services: Services) -> list[FlowResult]:
            return list(take_tick(services))

        if self.random.random() < self.odds.dropped:
            self.tally.dropped["tick"] += 1
        else:
            self._deliver(Event(kind="tick", flow=flow, retried=False))
        self._next_tick(resting_s)

    def _deliver(self, event: Event) -> None:
        event.attempts += 1
        self.tally.deliveries[event.kind] += 1
        plan = self.odds.plan(self.random, CALLS_PER_TICK if event.kind == "tick" else CALLS_PER_DELIVERY)
        Delivery(self, event, plan).begin()

    def finish(self, event: Event, work: Callable[[], object]) -> None:
        """Do the work, and acknowledge or retry the event as `functions/main.py` does."""
        try:
            results = work()
        except Killed:
            retry = True
        except TrainmasterError as error:
            self.tally.errors[type(error).__name__] += 1
            retry = error.retryable
        except Exception:  # the simulation is there to find any bug of a flow
            self.tally.bugs.append(f"{event.kind}: {traceback.format_exc()}")
            retry = True
        else:
            retry = False
            self._record_bugs(event, results)
        if retry and event.retried:
            wait_s = min(FIRST_RETRY_S * 2 ** (event.attempts - 1), MAX_RETRY_S)
            self.tally.redelivered[event.kind] += 1
            self.later(wait_s * (0.75 + self.random.random() / 2), partial(self._deliver, event))

    def _record_bugs(self, event: Event, results: object) -> None:
        for each in results if isinstance(results, list) else ():
            if isinstance(each, FlowResult) and each.severity == "CRITICAL":
                self.tally.bugs.append(f"{event.kind}: {each.message}")


class Pausable:
    """A function in its own thread, which blocks where it calls `pause` and continues when it is resumed.

    Only one thread runs at a time, so that a simulation has one order of steps and can be replayed.
    """

    def __init__(self, work: Callable[[], object]) -> None:
        self._work = work
        self._may_continue = threading.Semaphore(0)
        self._paused = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._crash: BaseException | None = None
        self._raised: BaseException | None = None
        self.ended = False
        self.result: object = None

    def resume(self, crash: BaseException | None = None) -> bool:
        """Continue until the next pause or the end; returns whether it has ended.

        With `crash`, that is raised where the function paused. What the function raises is raised here.
        """
        self._crash = crash
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()
        else:
            self._may_continue.release()
        self._paused.acquire()
        if self.ended:
            self._thread.join()
            if self._raised is not None:
                raise self._raised
        return self.ended

    def pause(self) -> None:
        """Called by the function itself: hand control back to the caller of `resume`."""
        self._paused.release()
        self._may_continue.acquire()
        if self._crash is not None:
            raise self._crash

    def _run(self) -> None:
        try:
            self.result = self._work()
        except BaseException as error:  # raised again by `resume`
            self._raised = error
        self.ended = True
        self._paused.release()


class Delivery:
    """One delivery to one process, which may be paused and may crash."""

    def __init__(self, simulation: Simulation, event: Event, plan: dict[int, Disruption]) -> None:
        self._simulation = simulation
        self._event = event
        self._plan = plan
        self._ran_s = 0.0
        self._paused: Pausable | None = None
        self._times_out = False

    def begin(self) -> None:
        simulation = self._simulation
        boundary = DisruptedBoundary(
            plan=self._plan,
            operations=simulation.tally.operations,
            disruptions=simulation.tally.disruptions,
            pause=self._pause,
            land=lambda call: simulation.later(
                simulation.random.random() * IN_FLIGHT_S, partial(self._land, call)
            ),
        )
        work = partial(self._event.flow, simulation.world.services(boundary))
        if PAUSES.isdisjoint(self._plan.values()):
            simulation.finish(self._event, work)
        else:
            self._paused = Pausable(work)
            self._advance()

    def _advance(self) -> None:
        """Run the delivery until its next pause or its end."""
        paused = present(self._paused)
        crash = Killed("at the function's timeout") if self._times_out else None
        try:
            ended = paused.resume(crash)
        except BaseException as error:  # handled as for a delivery without pauses
            self._simulation.finish(self._event, partial(_raise, error))
        else:
            if ended:
                self._simulation.finish(self._event, lambda: paused.result)

    def _pause(self, _: str) -> None:
        """Runs in the delivery's thread, while the simulation waits."""
        simulation, paused = self._simulation, self._paused
        assert paused is not None
        if simulation.random.random() < simulation.odds.beyond_lease:
            pause_s = LEASE.total_seconds() * (1 + simulation.random.random())
        else:
            pause_s = simulation.random.expovariate(1 / simulation.odds.pause_s)
            left_s = FUNCTION_TIMEOUT_S - self._ran_s
            self._times_out = pause_s > left_s
            pause_s = min(pause_s, left_s)
        self._ran_s += pause_s
        simulation.later(pause_s, self._advance)
        paused.pause()

    def _land(self, call: Callable[[], object]) -> None:
        try:
            call()
        except TrainmasterError as error:
            self._simulation.tally.errors[f"{type(error).__name__}, in flight after a crash"] += 1


def _raise(error: BaseException) -> None:
    raise error
