"""What users do to a deployment, and what goes wrong around it, drawn from a seed."""

import contextlib
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench.reckoning import Upload, stub_request
from bench.soaking.kills import FUNCTION, REPLICA, kill_one
from tests.e2e.project import Project, image_uri

PROJECT = "bench-soak"
PAUSE_S = (0.05, 1.5)
"""Between two events: the machine's two cores run about two jobs a second."""
FULL_S = 10
RULES = 5
ANY_END = ("succeeded", "failed", "cancelled", "expired")


@dataclass(kw_only=True)
class Traffic:
    """The traffic so far. `uncertain` are uploads whose answer was lost, which may be on record or not."""

    project: Project
    chance: random.Random
    uploads: list[Upload] = field(default_factory=list)
    uncertain: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    damaged: dict[str, bytes] = field(default_factory=dict)
    number: int = 0

    def name(self, what: str) -> str:
        self.number += 1
        return f"requests/{what}-{self.number:06d}.json"

    def drop(self, what: str, content: str, ends: tuple[str, ...]) -> None:
        name = self.name(what)
        try:
            generation = self.project.upload(name, content)
        except Exception as error:  # a full disk or a killed stack, whatever the client makes of it
            self.uncertain.add(name)
            self.done[f"{what}, unanswered: {type(error).__name__}"] += 1
            return
        self.uploads.append(Upload(name=name, generation=generation, ends=ends))
        self.done[what] += 1

    # What users do.

    def request(self) -> None:
        seconds = str(round(self.chance.uniform(0, 2), 1))
        self.drop("request", stub_request(PROJECT, seconds, model_name=self.model()), ANY_END)

    def tuning(self) -> None:
        rate = {"type": "double", "min": 0.001, "max": 1.0, "scale": "log"}
        document = {
            "model_name": self.model(),
            "image": f"{image_uri(PROJECT)}:1",
            "args": ["--epochs=2"],
            "cluster": {"chief": {"machine": "n1-standard-4"}},
            "tuning": {
                "metrics": [{"id": "loss", "goal": "minimize"}],
                "parameters": {"rate": rate},
                "max_trials": 2,
                "parallel_trials": 2,
            },
        }
        self.drop("tuning", json.dumps(document), ANY_END)

    def faulty(self) -> None:
        sound = stub_request(PROJECT)
        self.drop("faulty", sound[: self.chance.randrange(1, len(sound))], ("rejected",))

    def cancel(self) -> None:
        active = self.objects("active")
        if active:
            order = json.dumps({"cancel": {"run": self.chance.choice(active)}})
            with self.unanswered("cancel"):
                self.project.upload(self.name("cancel"), order)

    def rule(self) -> None:
        rule_id = self.chance.randrange(RULES)
        watched = {"objects": f"gs://{PROJECT}-data/{rule_id}/**", "min_objects": 5, "quiet_s": 1}
        request = json.loads(stub_request(PROJECT, "0.1", model_name=f"rule-{rule_id}"))
        document = {"when": [{"new_data": watched}, {"manual": {}}], "request": request}
        with self.unanswered("rule"):
            self.project.upload(f"rules/soak-{rule_id}.json", json.dumps(document))

    def data(self) -> None:
        bucket = self.project.storage.bucket(f"{PROJECT}-data")
        with self.unanswered("data"):
            for _ in range(self.chance.randrange(1, 4)):
                self.number += 1
                bucket.blob(f"{self.number % RULES}/{self.number:06d}.txt").upload_from_string(b"x")

    def fire(self) -> None:
        order = json.dumps({"fire": {"rule": f"soak-{self.chance.randrange(RULES)}"}})
        with self.unanswered("fire"):
            self.project.upload(self.name("fire"), order)

    # What goes wrong.

    def kill_function(self) -> None:
        self.done["function killed"] += kill_one(self.project.token(), FUNCTION, self.chance) is not None

    def kill_replica(self) -> None:
        self.done["replica killed"] += kill_one(self.project.token(), REPLICA, self.chance) is not None

    def corrupt(self) -> None:
        """Replace a document that the service can do without, by noise of up to 64 KiB."""
        prefix = self.chance.choice(("status/requests", "index", "reconcile", "rules"))
        there = self.objects(prefix)
        if there:
            name = f"{prefix}/{self.chance.choice(there)}"
            noise = self.chance.randbytes(self.chance.randrange(1, 2**16))
            blob = self.project.storage.bucket(self.project.ledger).blob(name)
            with self.unanswered("object damaged"):
                if prefix == "rules":  # repaired by hand, as the runbook says
                    self.damaged.setdefault(name, blob.download_as_bytes())
                blob.upload_from_string(noise)

    def repair(self) -> None:
        for name in list(self.damaged):
            with self.unanswered("object repaired"):
                self.project.storage.bucket(self.project.ledger).blob(name).upload_from_string(
                    self.damaged[name]
                )
                del self.damaged[name]

    def fill_disk(self, seconds: float = FULL_S) -> None:
        """Leave no byte on the disk of the state for a while while traffic continues."""
        ballast, until = self.project.state.parent / "ballast", time.monotonic() + seconds
        try:
            with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"\0" * 4096)
            while time.monotonic() < until:
                self.step(USERS)
        finally:
            ballast.unlink(missing_ok=True)
        self.done["disk filled"] += 1

    @contextmanager
    def unanswered(self, what: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.done[f"{what}, unanswered: {type(error).__name__}"] += 1
        else:
            self.done[what] += 1

    def model(self) -> str:
        return f"model-{self.chance.randrange(8)}"

    def objects(self, folder: str) -> list[str]:
        """The names of the objects in a folder of the ledger, in order."""
        path = self.project.folder(self.project.ledger) / folder
        return sorted(each.name for each in path.glob("*") if each.is_file())

    def step(self, actions: Sequence[tuple[str, int]]) -> None:
        names, weights = zip(*actions, strict=True)
        (name,) = self.chance.choices(names, weights)
        getattr(self, name)()
        time.sleep(self.chance.uniform(*PAUSE_S))

    def phase(self, actions: Sequence[tuple[str, int]], seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.step(actions)


USERS = (
    ("request", 50), ("data", 20), ("faulty", 8), ("cancel", 6), ("rule", 5), ("fire", 3), ("tuning", 2),
)  # fmt: skip


TROUBLES = (*USERS, ("kill_function", 4), ("kill_replica", 4), ("corrupt", 4), ("repair", 4))
