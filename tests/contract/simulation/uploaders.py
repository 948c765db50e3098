"""Users who write, rewrite, move and delete data that two rules watch, and the guarantee about their objects."""

import json
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

from tests.contract.retraining import DATA, SMALL, rule
from tests.contract.simulation.simulation import Event, Simulation
from tests.contract.world import LEDGER
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.stores.arrivals import ArrivalLog

WATCHED = {"objects": f"gs://{DATA}/**", "quiet_s": 60, "max_wait_s": 300}
NAMING = {"MANIFEST": "${data.manifest_uri:-}"}
RULES: dict[str, dict[str, Any]] = {"all": WATCHED, "folders": {**WATCHED, "each": "folder"}}
FOLDERS = 6
BETWEEN_S = 15.0


class Uploaders:
    """Every change is of an object that exists; each event is delivered at least once."""

    def __init__(self, simulation: Simulation, events: int) -> None:
        self._simulation = simulation
        self._events = events
        self._number = 0
        self._live: dict[str, bytes] = {}
        for name, watched in RULES.items():
            request = {**SMALL, "model_name": name, "env": NAMING}
            simulation.world.drop_rule(
                rule({"new_data": watched}, request=request, max_per_day=1000), f"rules/{name}.json"
            )
        simulation.later(1.0, self._change)

    def _change(self) -> None:
        simulation, random = self._simulation, self._simulation.random
        if simulation.tally.events >= self._events:
            return
        what = random.choices(("new", "again", "other", "move", "delete"), (60, 8, 8, 14, 10))[0]
        old = random.choice(list(self._live)) if self._live else None
        if old is None or what == "new":
            self._number += 1
            self._write(f"{self._folder()}/{self._number}.csv", b"content %d" % self._number)
        elif what == "again":
            self._write(old, self._live[old])
        elif what == "other":
            self._number += 1
            self._write(old, b"content %d" % self._number)
        else:
            if what == "move":
                self._write(f"{self._folder()}/{old.rpartition('/')[2]}", self._live[old])
            simulation.later(random.random() * 60, partial(self._delete, old, self._live[old]))
        simulation.later(random.expovariate(1 / BETWEEN_S), self._change)

    def _folder(self) -> str:
        """One of a few, which change with time."""
        return f"day-{self._number // 40}-{self._simulation.random.randrange(FOLDERS)}"

    def _write(self, name: str, content: bytes) -> None:
        objects = self._simulation.world.objects
        objects.write(DATA, name, content, if_generation=None)
        found = objects.describe(DATA, name)
        arrived = ArrivedObject(
            bucket=DATA,
            name=name,
            generation=found.generation,
            size_bytes=found.size_bytes,
            created_at=found.created_at,
            crc32c=found.crc32c,
        )
        self._live[name] = content

        def flow(services: Services) -> object:
            return ArrivalLog(services.arrivals.objects, LEDGER, services.clock).append(arrived)

        self._simulation.emit(Event(kind="data", flow=flow), may_be_dropped=False)

    def _delete(self, name: str, content: bytes) -> None:
        if self._live.get(name) == content:
            self._simulation.world.objects.delete(DATA, name)
            del self._live[name]

    def violations(self) -> Iterator[str]:
        """Objects that are in two manifests of a rule, or that exist and are in none and do not wait."""
        world = self._simulation.world
        world.tick()
        for name, watched in RULES.items():
            by_place = "each" in watched
            listed = [line for run in self._runs(name) for line in self._manifest(run)]
            twice = Counter((line["uri"], line["generation"]) for line in listed)
            yield from (
                f"{name}: {each} is in {times} manifests" for each, times in twice.items() if times > 1
            )
            lines = [(split_object_uri(line["uri"])[1], line["size"], line["crc32c"]) for line in listed]
            for chunk in world.state(name).chunks:
                kept = world.services().rule_data.read_chunk(chunk)
                lines += [(one.name, one.size_bytes, one.crc32c) for one in kept]
            known = {_identity(*line, by_place=by_place) for line in lines}
            for found in world.objects.listing(DATA, ""):
                if _identity(found.name, found.size_bytes, found.crc32c, by_place=by_place) not in known:
                    yield f"{name}: {found.name} exists and is in no manifest"

    def _runs(self, rule_id: str) -> Iterator[dict[str, str]]:
        for record in self._simulation.world.records():
            if record.source.rule_id == rule_id and record.source.firing_values is not None:
                yield dict(record.source.firing_values)

    def _manifest(self, values: dict[str, str]) -> list[dict[str, Any]]:
        """What the firing's manifest lists; its folder alone, if it has one."""
        objects, uri = self._simulation.world.objects, values["data.manifest_uri"]
        content = objects.read(*split_object_uri(uri), max_bytes=MIB).content
        lines = [json.loads(line) for line in content.splitlines()]
        assert len(lines) == int(values["data.count"])
        return lines


def _identity(name: str, size_bytes: int, crc32c: str, *, by_place: bool) -> tuple[str, int, str]:
    return name if by_place else name.rpartition("/")[2], size_bytes, crc32c
