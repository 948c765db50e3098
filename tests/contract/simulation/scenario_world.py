"""The world of a scenario, which remembers drops and waits for the jobs that steps refer to."""

import copy
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from tests.contract.retraining import DATA, RuleWorld
from tests.contract.rooms import Room
from tests.contract.world import LEASE, REQUEST_RULES, START
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject
from trainmaster.orchestrator.core.runs.job import Job

TICKS_MAX = 6


class ScenarioWorld(RuleWorld):
    """A world in which deliveries can be repeated: each name is dropped only once."""

    def __init__(self, request_rules: RequestRules = REQUEST_RULES) -> None:
        super().__init__(request_rules)
        self.room = Room(self)
        self.arrivals: dict[str, IncomingDocument] = {}
        self.data: dict[tuple[str, bytes], ArrivedObject] = {}

    def clone(self) -> "ScenarioWorld":
        """An independent copy in the same state."""
        other = ScenarioWorld(self.request_rules)
        other.clock.advance(self.clock.now() - START)
        other._attempts = copy.copy(self._attempts)
        other._dropped = self._dropped
        for mine, theirs in zip(self._parts(), other._parts(), strict=True):
            _copy_state(mine, theirs)
        return other

    def fingerprint(self) -> bytes:
        """A digest of the whole state: what follows from it is the same for all worlds with the same digest."""
        state = [self.clock.now(), self._attempts, self._dropped, self.hint_reads._jobs]
        return hashlib.sha256(repr([state, *map(_state_of, self._parts())]).encode()).digest()

    def _parts(self) -> Sequence[object]:
        return self, self.objects, self.jobs, self.models, self.notices, self.room

    def dropped(self, name: str, document: object, save: int = 0) -> IncomingDocument:
        """The file of this name; `save`: the nth time that it was saved again.

        It is rewritten with the mark of one upload: after a disruption, seconds have become minutes.
        """
        key, content = f"{name}#{save}", json.dumps(document).encode()
        if key not in self.arrivals:
            self.arrivals[key] = self.drop(content, f"requests/{name}.json", upload_id="one")
            self.wait(1)
        return self.arrivals[key]

    def put_data_once(self, name: str, content: bytes) -> ArrivedObject:
        if (name, content) not in self.data:
            self.objects.write(DATA, name, content, if_generation=None)
            found = self.objects.describe(DATA, name)
            self.data[name, content] = ArrivedObject(
                bucket=DATA,
                name=name,
                generation=found.generation,
                size_bytes=found.size_bytes,
                created_at=START,
                crc32c=found.crc32c,
            )
        return self.data[name, content]

    def job(self, number: int) -> Job:
        """The nth job in order of creation. If its process crashed before submitting it, wait until it is recovered."""
        for _ in range(TICKS_MAX):
            if len(self.jobs.all()) > number:
                break
            self.wait(LEASE.total_seconds() / 2)
            self.reconcile()
            self.tick()
        return self.jobs.all()[number]

    def await_challenger(self, order: str) -> None:
        """Wait until a challenger waits for approval, unless the order about it was dropped already."""
        for _ in range(TICKS_MAX):
            champion = self.services().champions.find("cassava")
            if f"{order}#0" in self.arrivals or (champion is not None and champion.pending is not None):
                return
            self.wait(LEASE.total_seconds() / 2)
            self.reconcile()
            self.tick()


def _copy_state(mine: object, theirs: object) -> None:
    for name, value in _state_of(mine).items():
        if isinstance(value, dict):
            kept = copy.copy(value)  # its values are frozen, or lists
            kept.update({key: list(each) for key, each in value.items() if isinstance(each, list)})
            setattr(theirs, name, kept)
        else:
            setattr(theirs, name, copy.copy(value))


# Any: numbers and collections of anything.
def _state_of(part: object) -> dict[str, Any]:
    """Numbers and collections. Locks, clocks and references between parts are not state."""
    return {
        name: value
        for name, value in vars(part).items()
        if value is None or isinstance(value, int | dict | list | set)
    }
