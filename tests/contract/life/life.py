"""A deployment's life on a virtual clock: users ask, jobs run, events come late, twice or never, processes die.

Everything that happens is one order of steps, drawn from the seed: the same seed lives the same life.
"""

import heapq
import itertools
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from random import Random

from tests.contract.life.accidents import PAUSES, Accident, AccidentBoundary
from tests.contract.life.actors import Actor
from tests.contract.life.odds import CALLS_OF_A_DELIVERY, CALLS_OF_A_TICK, Odds
from tests.contract.life.service import LivingJobs, LivingNotices
from tests.contract.life.tally import Tally
from tests.contract.life.watch import CAPPED, LIMITED, Watch
from tests.contract.retraining import RuleWorld
from tests.contract.world import LEASE, Killed
from trainmaster.orchestrator.adapters.pubsub import cloud_event
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.retraining.signals import ParsedNotice, parse_notice
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.reconcile import reconcile
from trainmaster.orchestrator.flows.retraining.tick import tick
from trainmaster.orchestrator.flows.retraining.turn import take_notice
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.queue_pass import complete_and_admit

FUNCTION_TIMEOUT_S = 120.0
"""As trainmaster/deploy/topology.yaml has it; the lease outlasts it by a minute."""
LANDING_S = 20.0
"""How long a dead process's request may still be on its way. With the listing's delay it must fit between the
function's timeout and the end of its lease."""
TICK_S = 60.0
REST_S = timedelta(days=3).total_seconds()
"""When nothing is left to happen but ticks, they go on for so long at most."""
FIRST_RETRY_S, LAST_RETRY_S = 10.0, 600.0
"""Eventarc's usual retry policy of Pub/Sub: exponential backoff between these."""


@dataclass(kw_only=True)
class Event:
    """Something to be delivered until it is acknowledged, or once only."""

    kind: str
    flow: Callable[[Services], object]
    again: bool = True
    attempts: int = 0


class Life:
    """Users and jobs are added by `Users` and `Trainers`; this is the clock, the deliveries and their accidents."""

    def __init__(self, *, seed: str, odds: Odds | None = None, jobs: type[LivingJobs] = LivingJobs) -> None:
        self.random = Random(seed)
        self.odds = odds or Odds()
        self.tally = Tally()
        self.world = RuleWorld(CAPPED if self.random.random() < self.odds.capped else LIMITED)
        self.watch = Watch(self.world, strict=not self.odds.beyond_lease)
        self.jobs = self.world.jobs = jobs(self.world.clock, self.random, self._created, self._asked)
        self.notices = self.world.notices = LivingNotices(self._published)
        self.on_created: Callable[[Job], None] = lambda _: None
        self._now_s = 0.0
        self._order: Iterator[int] = itertools.count()
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []

    def later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (self._now_s + seconds, next(self._order), act))

    def run(self) -> None:
        """Live until nothing is left to happen and no run is active."""
        self._next_tick(0.0)
        while self._agenda:
            at_s, _, act = heapq.heappop(self._agenda)
            self.world.clock.advance(timedelta(seconds=at_s - self._now_s))
            self._now_s = at_s
            act()

    def emit(self, event: Event, *, may_be_dropped: bool) -> None:
        """Send the event on its way: late, twice, out of order, or never."""
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

    def _asked(self, submission: Submission) -> None:
        self.tally.violations += self.watch.broken_by(submission, self.jobs.going())

    def _created(self, job: Job) -> None:
        self.on_created(job)

    def _published(self, notice: Notice) -> None:
        def flow(services: Services) -> object:
            heard = parse_notice(message)
            return list(take_notice(services, heard)) if isinstance(heard, ParsedNotice) else None

        message = self.world.message(cloud_event(notice, "//trainmaster/life"))
        self.emit(Event(kind="notice", flow=flow), may_be_dropped=True)

    def _delay_s(self) -> float:
        late = self.random.random() < self.odds.delayed
        return self.random.expovariate(1 / self.odds.delayed_s) if late else self.random.random() * 2

    def _next_tick(self, resting_s: float) -> None:
        """Ticks go on while anything else is to happen, and then until no run is active."""
        resting = not self._agenda
        if resting and (resting_s >= REST_S or not self.world.active()):
            return
        pause_s = TICK_S * 10 if resting and resting_s > LEASE.total_seconds() * 10 else TICK_S
        self.later(pause_s, partial(self._tick, resting_s + pause_s if resting else 0.0))

    def _tick(self, resting_s: float) -> None:
        def flow(services: Services) -> list[FlowResult]:
            return [*reconcile(services), *tick(services)]

        if self.random.random() < self.odds.dropped:
            self.tally.dropped["tick"] += 1
        else:
            self._deliver(Event(kind="tick", flow=flow, again=False))
        self._next_tick(resting_s)

    def _deliver(self, event: Event) -> None:
        event.attempts += 1
        self.tally.deliveries[event.kind] += 1
        plan = self.odds.plan(self.random, CALLS_OF_A_TICK if event.kind == "tick" else CALLS_OF_A_DELIVERY)
        Delivery(self, event, plan).begin()

    def ended(self, event: Event, work: Callable[[], object]) -> None:
        """Do the work and answer as `functions/main.py` does: acknowledge, or have it delivered again."""
        try:
            results = work()
        except Killed:
            again = True
        except TrainmasterError as error:
            self.tally.answered[type(error).__name__] += 1
            again = error.retryable
        except Exception:  # any mistake of the flow is what this is here to find
            self.tally.mistakes.append(f"{event.kind}: {traceback.format_exc()}")
            again = True
        else:
            again = False
            self._record_mistakes(event, results)
        if again and event.again:
            wait_s = min(FIRST_RETRY_S * 2 ** (event.attempts - 1), LAST_RETRY_S)
            self.tally.redelivered[event.kind] += 1
            self.later(wait_s * (0.75 + self.random.random() / 2), partial(self._deliver, event))

    def _record_mistakes(self, event: Event, results: object) -> None:
        for each in results if isinstance(results, list) else ():
            if isinstance(each, FlowResult) and each.severity == "CRITICAL":
                self.tally.mistakes.append(f"{event.kind}: {each.message}")


class Delivery:
    """One delivery to one process, which may be paused and may die."""

    def __init__(self, life: Life, event: Event, plan: dict[int, Accident]) -> None:
        self._life = life
        self._event = event
        self._plan = plan
        self._ran_s = 0.0
        self._actor: Actor | None = None
        self._dies = False

    def begin(self) -> None:
        life = self._life
        boundary = AccidentBoundary(
            plan=self._plan,
            operations=life.tally.operations,
            struck=life.tally.struck,
            pause=self._pause,
            land=lambda call: life.later(life.random.random() * LANDING_S, partial(self._land, call)),
        )
        work = partial(self._event.flow, life.world.services(boundary))
        if PAUSES.isdisjoint(self._plan.values()):
            life.ended(self._event, work)
        else:
            self._actor = Actor(work)
            self._go_on()

    def _go_on(self) -> None:
        """A step of a paused delivery; what it is answered when it ends."""
        actor = self._actor
        assert actor is not None
        death = Killed("at the function's timeout") if self._dies else None
        try:
            ended = actor.resume(death)
        except BaseException as error:  # answered like that of an unpaused delivery
            self._life.ended(self._event, partial(_raise, error))
        else:
            if ended:
                self._life.ended(self._event, lambda: actor.answer)

    def _pause(self, _: str) -> None:
        """Runs in the actor's thread, while the simulation stands still."""
        life, actor = self._life, self._actor
        assert actor is not None
        if life.random.random() < life.odds.beyond_lease:
            pause_s = LEASE.total_seconds() * (1 + life.random.random())
        else:
            pause_s = life.random.expovariate(1 / life.odds.pause_s)
            left_s = FUNCTION_TIMEOUT_S - self._ran_s
            self._dies = pause_s > left_s
            pause_s = min(pause_s, left_s)
        self._ran_s += pause_s
        life.later(pause_s, self._go_on)
        actor.stop()

    def _land(self, call: Callable[[], object]) -> None:
        try:
            call()
        except TrainmasterError as error:
            self._life.tally.answered[f"{type(error).__name__}, to nobody"] += 1


def _raise(error: BaseException) -> None:
    raise error
