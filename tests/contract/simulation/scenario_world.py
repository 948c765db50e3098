"""The world of a scenario, which remembers drops and waits for the jobs that steps refer to."""

import copy
import json

from tests.contract.retraining import RuleWorld
from tests.contract.rooms import Room
from tests.contract.world import LEASE, MODELS, REQUEST_RULES, START, export_manifest
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.runs.job import Job

TICKS_MAX = 6


class ScenarioWorld(RuleWorld):
    """A world in which deliveries can be repeated: each name is dropped only once."""

    def __init__(self, request_rules: RequestRules = REQUEST_RULES) -> None:
        super().__init__(request_rules)
        self.room = Room(self)
        self.arrivals: dict[str, IncomingDocument] = {}

    def clone(self) -> "ScenarioWorld":
        """An independent copy in the same state."""
        other = ScenarioWorld(self.request_rules)
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
            _copy_state(mine, theirs)
        return other

    def dropped(self, name: str, document: object) -> IncomingDocument:
        if name not in self.arrivals:
            self.arrivals[name] = self.drop(json.dumps(document).encode(), f"requests/{name}.json")
            self.wait(1)
        return self.arrivals[name]

    def job(self, number: int) -> Job:
        """The nth job in order of creation. If its process crashed before submitting it, wait until it is recovered."""
        for _ in range(TICKS_MAX):
            if len(self.jobs.all()) > number:
                break
            self.wait(LEASE.total_seconds() / 2)
            self.reconcile()
            self.tick()
        return self.jobs.all()[number]

    def export(self, output_uri: str, accuracy: float) -> None:
        """Write the model that a trainer exports, with that accuracy."""
        prefix = f"{output_uri}/model/".removeprefix(f"gs://{MODELS}/")
        manifest = {**export_manifest(f"gs://{MODELS}/{prefix}"), "metrics": {"accuracy": accuracy}}
        self.objects.write(MODELS, prefix + "saved_model.pb", b"graph", if_generation=None)
        self.objects.write(MODELS, prefix + "export.json", json.dumps(manifest).encode(), if_generation=None)


def _copy_state(mine: object, theirs: object) -> None:
    """Copy numbers and collections. Locks, clocks and references between parts stay the copy's."""
    for name, value in vars(mine).items():
        if value is None or isinstance(value, int):
            setattr(theirs, name, value)
        elif isinstance(value, dict):
            kept = copy.copy(value)  # its values are frozen, or lists
            kept.update({key: list(each) for key, each in value.items() if isinstance(each, list)})
            setattr(theirs, name, kept)
        elif isinstance(value, list | set):
            setattr(theirs, name, copy.copy(value))
