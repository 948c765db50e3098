"""What a deployment promised while it was soaked: every broken promise, and the memory that its functions took."""

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

from bench.reckoning import custom_jobs, reckoned
from bench.soaking.kills import FUNCTION
from bench.soaking.traffic import ANY_END, Traffic
from tests.e2e.project import Project
from trainmaster.orchestrator.core.names import ACTIVE_PREFIX, RUN_LABEL, SLOTS_PREFIX, WAITING_PREFIX

GROWTH_MAX = 1.10
DRAIN_S = 900
"""What is still active this long after the last event is unfinished."""
PASSING = (ACTIVE_PREFIX, WAITING_PREFIX, SLOTS_PREFIX, "arrivals/", "reconcile/")
"""Folders of the ledger that are empty when nothing is active."""


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
    found, here = {}, f"{project.state.resolve()}/"
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment = process.environ()
            name = environment.get(FUNCTION)
            if name is not None and environment.get("CURL_HOME", "").startswith(here):
                found[name, process.pid] = process.memory_info().rss
    return found


def until_drained(traffic: Traffic) -> float:
    """Seconds until nothing was active any more, or DRAIN_S."""
    began = time.monotonic()
    while time.monotonic() - began < DRAIN_S:
        traffic.repair()
        known = {record["source"].get("object_name") for record in traffic.project.records().values()}
        all_known = all(upload.name in known for upload in traffic.uploads)
        if all_known and not any(map(traffic.objects, PASSING)):
            break
        time.sleep(2)
    return time.monotonic() - began


def broken(traffic: Traffic, growth: Growth, *, drained_s: float) -> dict[str, list[str]]:
    """Every broken promise, with the names that show it."""
    project, records = traffic.project, list(traffic.project.records().values())
    runs = {record["run_id"]: record for record in records}
    jobs = jobs_of(project, {run_id for run_id, record in runs.items() if is_tuning(record)})
    asked = [
        each for each in records if each["source"].get("object_name") in {up.name for up in traffic.uploads}
    ]
    of_asked = {record["run_id"] for record in asked}
    # A run that ended while it waited never had a job.
    unsubmitted = {run_id for run_id, record in runs.items() if not record.get("job")}
    reckoning = vars(reckoned(traffic.uploads, asked, [each for each in jobs if each[1] in of_asked]))
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
        "objects left": [f"{each}{name}" for each in PASSING for name in traffic.objects(each)],
        "not drained": [f"after {drained_s:.0f} s"] if drained_s >= DRAIN_S else [],
        "memory never compared": [] if growth.worst else ["no function lived through a calm phase"],
        "functions that grew": [
            f"{name} x{ratio:.2f}" for name, ratio in growth.worst.items() if ratio > GROWTH_MAX
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


def report(traffic: Traffic, growth: Growth, found: dict[str, list[str]]) -> int:
    for what, count in sorted(traffic.done.items()):
        print(f"{what:<48}{count:>7}")
    print(f"\n{'memory':<24}{'most':>12}{'growth':>9}   limit {GROWTH_MAX:.2f}")
    for name in sorted(growth.most):
        worst = growth.worst.get(name)
        grown = f"{worst:>9.2f}" if worst else f"{'-':>9}"
        print(f"{name:<24}{growth.most[name] / 2**20:>8.0f} MiB{grown}")
    print(f"\npromises broken: {len(found)}")
    for what, names in found.items():
        print(f"  {what}: {len(names)} ({', '.join(names[:5])})")
    return 1 if found else 0
