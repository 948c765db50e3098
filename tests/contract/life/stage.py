"""The world that a story is told in: it remembers what was dropped, and waits for the jobs that are spoken of."""

import copy
import json

from tests.contract.retraining import RuleWorld
from tests.contract.rooms import Room
from tests.contract.world import LEASE, MODELS, REQUEST_RULES, START, export_manifest
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.runs.job import Job

TICKS_MAX = 6


class Stage(RuleWorld):
    """A world in which a delivery can be repeated: what was dropped once is there under its name."""

    def __init__(self, request_rules: RequestRules = REQUEST_RULES) -> None:
        super().__init__(request_rules)
        self.room = Room(self)
        self.arrivals: dict[str, IncomingDocument] = {}

    def copied(self) -> "Stage":
        """A stage of its own on which the same has happened."""
        other = Stage(self.request_rules)
        other.clock.advance(self.clock.now() - START)
        other._attempts = copy.copy(self._attempts)
        other._dropped = self._dropped
        for mine, theirs in (
            (self, other),
            (self.objects, other.objects),
            (self.jobs, other.jobs),
            (self.notices, other.notices),
            (self.room, other.room),
        ):
            _take_over(mine, theirs)
        return other

    def dropped(self, name: str, document: object) -> IncomingDocument:
        if name not in self.arrivals:
            self.arrivals[name] = self.drop(json.dumps(document).encode(), f"requests/{name}.json")
            self.wait(1)
        return self.arrivals[name]

    def job(self, number: int) -> Job:
        """The nth job, in the order of their making; whoever was to submit it may have died."""
        for _ in range(TICKS_MAX):
            if len(self.jobs.all()) > number:
                break
            self.wait(LEASE.total_seconds() / 2)
            self.reconcile()
            self.tick()
        return self.jobs.all()[number]

    def export(self, output_uri: str, accuracy: float) -> None:
        """A trainer leaves a model of that accuracy in its directory."""
        prefix = f"{output_uri}/model/".removeprefix(f"gs://{MODELS}/")
        manifest = {**export_manifest(f"gs://{MODELS}/{prefix}"), "metrics": {"accuracy": accuracy}}
        self.objects.write(MODELS, prefix + "saved_model.pb", b"graph", if_generation=None)
        self.objects.write(MODELS, prefix + "export.json", json.dumps(manifest).encode(), if_generation=None)


def _take_over(mine: object, theirs: object) -> None:
    """Give the other the same numbers and collections; locks, clocks and each other are its own."""
    for name, value in vars(mine).items():
        if value is None or isinstance(value, int):
            setattr(theirs, name, value)
        elif isinstance(value, dict):
            kept = copy.copy(value)  # whose values are frozen, or lists
            kept.update({key: list(each) for key, each in value.items() if isinstance(each, list)})
            setattr(theirs, name, kept)
        elif isinstance(value, list | set):
            setattr(theirs, name, copy.copy(value))
