"""A deployment whose items may kill the process, raise, compute for long or be damaged whenever a tick works on them."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from tests.contract.retraining import SMALL, RuleWorld, rule
from tests.contract.world import INBOX, LEDGER, Killed
from tests.memory import ManualClock, MemoryObjects
from tests.narrowing import present
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.rule import RunOutputs, state_object
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import FlowResult
from trainmaster.orchestrator.ports.objects import Listed, Stored
from trainmaster.orchestrator.stores.ledger import Ledger

EVERY_MINUTE: dict[str, Any] = {"schedule": {"cron": "* * * * *"}}
TICK_S = 60.0
TIMEOUT = timedelta(seconds=300)
"""As trainmaster/deploy/topology.yaml sets it for on-tick."""
READ_S, WRITE_S, LIST_S = 0.02, 0.05, 0.1
"""How long Cloud Storage takes."""
COMPUTING_S = 20.0
"""What an expensive item computes: more than a turn may."""


@dataclass(kw_only=True)
class Hostility:
    """Names of objects, and what happens to a tick that reads one."""

    kills: set[str] = field(default_factory=set)
    raises: set[str] = field(default_factory=set)
    computes: set[str] = field(default_factory=set)


class HostileObjects(MemoryObjects):
    """Buckets in memory. Calls take time, which `at_once` threads share, and reads of some objects do harm."""

    def __init__(self, clock: ManualClock, hostility: Hostility) -> None:
        super().__init__(clock)
        self.hostility = hostility
        self.at_once: int | None = None
        self.ticking = False
        self.operations = 0
        self._manual = clock
        self._turn = threading.Lock()

    def read(self, bucket: str, name: str, generation: int | None = None, *, max_bytes: int) -> Stored:
        self._took(READ_S)
        if self.ticking:
            if name in self.hostility.kills:
                raise Killed(f"at {name}")
            if name in self.hostility.raises:
                raise RecursionError("maximum recursion depth exceeded")
            if name in self.hostility.computes:
                with self._turn:
                    self._manual.compute(COMPUTING_S)
        return super().read(bucket, name, generation, max_bytes=max_bytes)

    def write(self, bucket: str, name: str, content: bytes, **options: Any) -> int:  # Any: the port's
        self._took(WRITE_S)
        return super().write(bucket, name, content, **options)

    def delete(self, bucket: str, name: str, *, if_generation: int | None = None) -> None:
        self._took(WRITE_S)
        super().delete(bucket, name, if_generation=if_generation)

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        self._took(LIST_S)
        yield from super().listing(bucket, prefix, after)

    def _took(self, seconds: float) -> None:
        with self._turn:
            self.operations += 1
            if self.at_once is not None:
                self._manual.advance(timedelta(seconds=seconds / self.at_once))


class HostileWorld(RuleWorld):
    """Many rules, some of them hostile, and a tick a minute. `at_once` models the time of calls, by that many threads."""

    def __init__(self, at_once: int | None = None) -> None:
        super().__init__()
        self.hostility = Hostility()
        self.objects = self.hostile = HostileObjects(self.clock, self.hostility)
        self.ledger = Ledger(self.objects, LEDGER)
        self._at_once = at_once
        self.ticks_that_died = 0

    def accept_copies(self, *rule_ids: str, **changes: object) -> None:
        """Put rules into force that fire every minute, as if each had been dropped; the first is."""
        document = rule(EVERY_MINUTE, request={**SMALL, "model_name": "m"}, **changes)
        self.drop_rule(document, f"rules/{rule_ids[0]}.json")
        services = self.services()
        held = services.rule_book.read()
        first = present(held.document.find(rule_ids[0]))
        copies = []
        for rule_id in rule_ids[1:]:
            name = f"rules/{rule_id}.json"
            generation = self.objects.write(INBOX, name, json.dumps(document).encode(), if_generation=None)
            makes = RunOutputs(model_name="m")
            copies.append(
                replace(first, rule_id=rule_id, dropped_name=name, generation=generation, makes=makes)
            )
            state = replace(self.state(rule_ids[0]), rule_id=rule_id, generation=generation)
            services.rule_states.replace(services.rule_states.read(rule_id), state)
        rules = sorted((*held.document.rules, *copies), key=lambda each: each.rule_id)
        services.rule_book.replace(held, Book(rules=tuple(rules)))

    def minute(self) -> list[FlowResult]:
        """Wait for the next minute, and take its tick, which may die. Returns what it logged until then."""
        self.wait(TICK_S - self.clock.now().timestamp() % TICK_S)
        services = self.services()
        if self._at_once is not None:
            services.turns_at_once, services.timeout = self._at_once, TIMEOUT
        self.hostile.at_once, self.hostile.ticking = self._at_once, True
        logged: list[FlowResult] = []
        try:
            logged.extend(take_tick(services))
        except Killed:
            self.ticks_that_died += 1
        finally:
            self.hostile.at_once, self.hostile.ticking = None, False
        return logged

    def firings(self, rule_id: str) -> int:
        state = self.services().rule_states.read(rule_id).document
        return state.number if state is not None else 0


def state_of(rule_id: str) -> str:
    return state_object(rule_id)
