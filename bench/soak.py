"""An hour of mixed traffic on the local stack, drawn from a seed: what is lost, doubled, left behind, or grows.

python bench/soak.py [--minutes 60] [--seed 1] [--disk-mib 1024]

Real: the stack as users start it, the functions, the official clients, and every job's replica, a process.
Not real: what the replicas do (a shell script that leaves a file, and for tunings a small program), the time between
ticks, 2 s, and the pauses of redelivery, which are shorter than the cloud's.

Calm phases and rough ones take turns. In both, requests, tunings, faulty requests, new and changed rules, data for
them, and cancellations arrive. In a rough one, functions, replicas and the whole stack are also killed, objects of the
ledger are replaced by noise, and the disk fills up: the state is in a tmpfs of --disk-mib, which takes root; without
it the disk stays as it is, and the first line says so.

Each function's memory is compared between the end of a calm phase's warm-up and the end of the phase, for processes
that lived through both.

Exits with 1 when an upload is lost, doubled or unfinished, a run has two jobs, a firing is missing, a marker, slot,
file or process is left over, or a function grew by more than a tenth.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from tests.e2e.project import Project, image_uri, nothing_left, running_project  # noqa: E402  # needs the line above
from tests.e2e.proxied import quick_topology  # noqa: E402
from tests.e2e.reckoning import (  # noqa: E402
    STUB,
    Upload,
    custom_jobs,
    reckoned,
    records_on_disk,
    stub_request,
    stub_uri,
)
from tests.e2e.test_kill_under_load import FUNCTION, REPLICA, kill_one  # noqa: E402
from trainmaster.orchestrator.core.names import (  # noqa: E402
    ACTIVE_PREFIX,
    RUN_LABEL,
    SLOTS_PREFIX,
    WAITING_PREFIX,
)

PROJECT = "bench-soak"
PHASE_S = 300
WARM_S = 120
"""Of a calm phase, before a function's memory counts."""
GROWTH_MAX = 1.10
PAUSE_S = (0.05, 1.5)
"""Between two events: the machine's two cores run about two jobs a second."""
FULL_S = 10
DRAIN_S = 900
"""What is still active this long after the last event is unfinished."""
RULES = 5
LIMIT_JOBS = 6
PASSING = (ACTIVE_PREFIX, WAITING_PREFIX, SLOTS_PREFIX, "arrivals/", "reconcile/")
"""Folders of the ledger that are empty when nothing is active."""
ANY_END = ("succeeded", "failed", "cancelled", "expired")


@dataclass(kw_only=True)
class Growth:
    """Resident bytes of functions' processes by (function, pid): at the end of the warm-up, and last."""

    warm: dict[tuple[str, int], int] = field(default_factory=dict)
    worst: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    most: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def begin(self, project: Project) -> None:
        self.warm = resident(project)

    def end(self, project: Project) -> None:
        for key, now in resident(project).items():
            self.most[key[0]] = max(self.most[key[0]], now)
            if key in self.warm:
                self.worst[key[0]] = max(self.worst[key[0]], now / self.warm[key])


def resident(project: Project) -> dict[tuple[str, int], int]:
    found = {}
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            if environment.get("LOGGING_EMULATOR_HOST") == project.env["LOGGING_EMULATOR_HOST"]:
                name = environment.get(FUNCTION)
                if name is not None:
                    found[name, process.pid] = process.memory_info().rss
    return found


@dataclass(kw_only=True)
class Soak:
    """The traffic so far. `uncertain` are uploads whose answer was lost, which may be on record or not."""

    project: Project
    chance: random.Random
    uploads: list[Upload] = field(default_factory=list)
    uncertain: set[str] = field(default_factory=set)
    done: Counter[str] = field(default_factory=Counter)
    damaged: dict[str, bytes] = field(default_factory=dict)
    growth: Growth = field(default_factory=Growth)
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


@contextmanager
def state_folder(disk_mib: int) -> Iterator[tuple[Path, bool]]:
    """A folder for the state, and whether it is on a separate disk that may be filled."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "disk"
        folder.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={disk_mib}m,mode=700", "trainmaster-soak", str(folder)]
        program = shutil.which("mount")
        mounted = (
            program is not None
            and os.geteuid() == 0
            and subprocess.run(mount, capture_output=True, check=False).returncode == 0
        )
        try:
            yield folder, mounted
        finally:
            if mounted:
                subprocess.run(["umount", "--lazy", str(folder)], check=True)


def policy(folder: Path) -> Path:
    """The shipped policy, with a limit that makes runs wait for slots, and without caps, which would end the soak."""
    read = yaml.safe_load((ROOT / "functions" / "policy.yaml").read_text())
    read["admission"] = {"limits": [{"jobs": LIMIT_JOBS}]}
    path = folder / "policy.yaml"
    path.write_text(yaml.safe_dump(read))
    return path


def flags(folder: Path) -> tuple[str, ...]:
    topology = quick_topology(folder)
    read = yaml.safe_load(topology.read_text())
    read["environment"]["TRAINMASTER_POLICY"] = str(policy(folder))
    topology.write_text(yaml.safe_dump(read))
    return (
        "--topology", str(topology), "--image", f"{stub_uri(PROJECT)}={STUB}",
        "--retry-min-s", "0.5", "--retry-max-s", "5", "--tick-s", "2",
    )  # fmt: skip


def soaked(folder: Path, disk: Path, minutes: float, seed: int, *, may_fill: bool) -> int:
    start = partial(running_project, disk / "state", *flags(folder), project=PROJECT)
    chance, until = random.Random(seed), time.monotonic() + 60 * minutes
    with ExitStack() as stack:
        soak = Soak(project=stack.enter_context(start()), chance=chance)
        while time.monotonic() < until:
            calm_s = min(PHASE_S, max(10.0, (until - time.monotonic()) / 2))
            warm_s = min(WARM_S, calm_s / 2)
            soak.phase(USERS, warm_s)
            soak.growth.begin(soak.project)
            soak.phase(USERS, calm_s - warm_s)
            soak.growth.end(soak.project)
            soak.phase(TROUBLES, calm_s / 2)
            if may_fill:
                soak.fill_disk()
            token = soak.project.token()
            soak.project.process.kill()
            soak.project.process.wait()
            stack.close()
            soak.project.eventually(lambda: nothing_left(token), "no process outlives the killed stack")  # noqa: B023
            soak.done["stack killed"] += 1
            soak.project = stack.enter_context(start())
            soak.phase(TROUBLES, calm_s / 4)
            soak.repair()
            print(f"  {dict(soak.done)}", file=sys.stderr, flush=True)
        drained = until_drained(soak)
        found = broken(soak, drained_s=drained)
        token = soak.project.token()
    if not nothing_left(token):
        found["processes left after the stack's end"] = ["some"]
    return report(soak, found)


def until_drained(soak: Soak) -> float:
    """Seconds until nothing was active any more, or DRAIN_S."""
    began = time.monotonic()
    while time.monotonic() - began < DRAIN_S:
        soak.repair()
        known = {record["source"].get("object_name") for record in records_on_disk(soak.project)}
        all_known = all(upload.name in known for upload in soak.uploads)
        if all_known and not any(map(soak.objects, PASSING)):
            break
        time.sleep(2)
    return time.monotonic() - began


def broken(soak: Soak, *, drained_s: float) -> dict[str, list[str]]:
    """Every broken promise, with the names that show it."""
    project, records = soak.project, records_on_disk(soak.project)
    runs = {record["run_id"]: record for record in records}
    jobs = jobs_of(project, {run_id for run_id, record in runs.items() if is_tuning(record)})
    asked = [
        each for each in records if each["source"].get("object_name") in {up.name for up in soak.uploads}
    ]
    of_asked = {record["run_id"] for record in asked}
    # A run that ended while it waited never had a job.
    unsubmitted = {run_id for run_id, record in runs.items() if not record.get("job")}
    reckoning = vars(reckoned(soak.uploads, asked, [each for each in jobs if each[1] in of_asked]))
    found = {what.replace("_", " "): sorted(set(names) - unsubmitted) for what, names in reckoning.items()}
    counted = Counter(run_id for _, run_id in jobs)
    fired = Counter(firing(record) for record in records if record["source"]["kind"] == "rule")
    found |= {
        "runs with two jobs": [
            run_id
            for run_id, count in counted.items()
            if run_id in runs and count - len(runs[run_id]["submission"]["abandoned_jobs"]) > 1
        ],
        "firings with two runs": [name for name, count in fired.items() if count > 1],
        "records not ended": [
            run_id for run_id, record in runs.items() if record["state"] not in (*ANY_END, "rejected")
        ],
        "files left": [
            f"{part}/{path.name}"
            for part in ("storage/uploads", "storage/aside")
            for path in (project.state / part).rglob("*")
            if path.is_file()
        ],
        "objects left": [f"{each}{name}" for each in PASSING for name in soak.objects(each)],
        "not drained": [f"after {drained_s:.0f} s"] if drained_s >= DRAIN_S else [],
        "functions that grew": [
            f"{name} x{ratio:.2f}" for name, ratio in soak.growth.worst.items() if ratio > GROWTH_MAX
        ],
    }
    return {what: names for what, names in found.items() if names}


def jobs_of(project: Project, tunings: set[str]) -> list[tuple[str, str]]:
    """Every job that a run has asked for, with the run that its label names: trials are labelled like their study."""
    custom = [(job.name, job.labels.get(RUN_LABEL, "")) for job in custom_jobs(project)]
    plain = [(name, run_id) for name, run_id in custom if run_id not in tunings]
    return plain + [(job.name, run_id) for run_id in tunings for job in project.tuning_jobs(run_id)]


def firing(record: Mapping[str, Any]) -> str:
    return f"{record['source']['rule_id']} {record['source']['firing']}"


def is_tuning(record: Mapping[str, Any]) -> bool:
    return "tuning" in ((record.get("request") or {}).get("document") or {})


def report(soak: Soak, found: dict[str, list[str]]) -> int:
    for what, count in sorted(soak.done.items()):
        print(f"{what:<48}{count:>7}")
    print(f"\n{'memory':<24}{'most':>12}{'growth':>9}   limit {GROWTH_MAX:.2f}")
    for name in sorted(soak.growth.most):
        worst = soak.growth.worst.get(name)
        grown = f"{worst:>9.2f}" if worst else f"{'-':>9}"
        print(f"{name:<24}{soak.growth.most[name] / 2**20:>8.0f} MiB{grown}")
    print(f"\npromises broken: {len(found)}")
    for what, names in found.items():
        print(f"  {what}: {len(names)} ({', '.join(names[:5])})")
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--disk-mib", type=int, default=1024, help="size of the state's own disk")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or the stack would outlive it
    with tempfile.TemporaryDirectory() as name, state_folder(arguments.disk_mib) as (disk, may_fill):
        print(f"{arguments.minutes:g} minutes, seed {arguments.seed}; the disk {'fills up at times' if may_fill else 'is never filled: that takes root'}")  # fmt: skip
        return soaked(Path(name), disk, arguments.minutes, arguments.seed, may_fill=may_fill)


if __name__ == "__main__":
    sys.exit(main())
