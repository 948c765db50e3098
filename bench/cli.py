"""How long the command takes, with 10,000 runs in the ledger, and gcloud's `ai custom-jobs list` beside it.

python bench/cli.py [--rounds 5] [--runs 10000]

Every measurement is a new process against one local stack; the commands take turns, so that whatever else the machine
does meets all of them. Byte code is warm. The index of runs is written directly, and there are no jobs for gcloud to list,
which is to its advantage. Limits and the ratio to gcloud apply to the fastest of each, because other work on the machine
only adds to the time. The exit status says whether every limit holds.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

import requests  # noqa: E402  # needs the line above
from requests.adapters import HTTPAdapter  # noqa: E402

from tests.client.served import run_record  # noqa: E402
from tests.e2e.project import Project, running_project  # noqa: E402
from trainmaster.orchestrator.core.runs.index import IndexRow, index_object, row_metadata  # noqa: E402
from trainmaster.orchestrator.core.runs.states import RunState  # noqa: E402

HELP, LS, FILTERED, STATUS, GCLOUD = "--help", "ls", "ls --state failed", "status RUN", "gcloud"
LIMITS_S = {HELP: 0.4, LS: 1.0, STATUS: 0.8}
LS_OPERATIONS_MAX = 10
OF_GCLOUD = 0.5
"""The most that `ls` may take of gcloud's time for the same question."""
WRITERS = 8
_OPERATIONS = re.compile(r"Storage operations: (\d+)")


@dataclass(frozen=True, kw_only=True)
class Took:
    """One process: its time, and the processor time of itself and its children."""

    seconds: float
    processor: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10_000)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_project(Path(folder) / "state", project="bench-cli") as project,
    ):
        run_id = fill(project, asked.runs)
        commands = commands_of(project, run_id)
        environment = environment_of(project, Path(folder))
        for command in commands.values():  # compiles what has no byte code yet
            timed(command, environment)
        measured: dict[str, list[Took]] = {name: [] for name in commands}
        for _ in range(asked.rounds):
            for name, command in commands.items():
                measured[name].append(timed(command, environment))
        return report(measured, operations(commands, environment))


def fill(project: Project, runs: int) -> str:
    """Write that many rows of the index, a minute apart, and the record of the newest run; returns its id."""
    session = requests.Session()
    session.mount("http://", HTTPAdapter(pool_maxsize=WRITERS))
    rows = [row_of(number) for number in range(runs)]

    def write(row: IndexRow) -> None:
        put(session, project, index_object(row.created_at, row.run_id), b"1", row_metadata(row))

    with session, ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(write, rows))
    newest = rows[-1].run_id
    project.storage.bucket(project.ledger).blob(f"runs/{newest}.json").upload_from_string(
        json.dumps(run_record("failed", run_id=newest))
    )
    return newest


def row_of(number: int) -> IndexRow:
    created_at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    return IndexRow(
        run_id=f"cassava-{created_at:%Y%m%dt%H%M%S}-{number:010x}",
        created_at=created_at,
        state=RunState.FAILED if number % 500 == 0 else RunState.SUCCEEDED,
        source="upload",
        generation=1,
        updated_at=created_at,
        ended_at=created_at + timedelta(minutes=50),
        model_name="cassava-resnet50",
        machines="n1-standard-8 with 1 NVIDIA_TESLA_T4, 3 workers of the same type",
        region="us-central1",
        labels={"team": f"team-{number % 7}", "owner": "ann"},
        sent_by=f"user{number % 9}@example.com",
        commit="04889a2c9d3b6c1f0e7a5d4c3b2a190817263544",
        args={"--learning_rate": f"{1 / (number % 11 + 1):.4f}", "--epochs": "20"},
        metrics={"accuracy": number * 7919 % 10_007 / 10_007, "loss": number * 104_729 % 9_973 / 9_973},
    )


def put(
    session: requests.Session, project: Project, name: str, content: bytes, metadata: Mapping[str, str]
) -> None:
    """Write one object in one request: JSON API, multipart."""
    boundary = "of-the-benchmark"
    parts = (
        (b"application/json", json.dumps({"name": name, "metadata": dict(metadata)}).encode()),
        (b"text/plain", content),
    )
    body = b"".join(
        b"--%s\r\nContent-Type: %s\r\n\r\n%s\r\n" % (boundary.encode(), kind, text) for kind, text in parts
    )
    answer = session.post(
        f"{project.env['STORAGE_EMULATOR_HOST']}/upload/storage/v1/b/{project.ledger}/o?uploadType=multipart",
        data=body + b"--%s--" % boundary.encode(),
        headers={"Content-Type": f"multipart/related; boundary={boundary}"},
        timeout=60,
    )
    answer.raise_for_status()


def commands_of(project: Project, run_id: str) -> dict[str, Sequence[str]]:
    ours = [sys.executable, "-m", "trainmaster"]
    here = ["--context", f"local:{project.state}"]
    found: dict[str, Sequence[str]] = {
        HELP: [*ours, "--help"],
        LS: [*ours, "ls", *here],
        FILTERED: [*ours, "ls", "--state", "failed", *here],
        STATUS: [*ours, "status", run_id, *here],
    }
    gcloud = shutil.which("gcloud")
    return found if gcloud is None else {**found, GCLOUD: [gcloud, "ai", "custom-jobs", "list", "--limit=20"]}


def environment_of(project: Project, home: Path) -> dict[str, str]:
    """The variables of `trainmaster stack env`, which gcloud needs."""
    printed = subprocess.run(
        [sys.executable, "-m", "trainmaster", "stack", "env", "--state", str(project.state)],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    from trainstack.find import read_stack_env

    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **read_stack_env(printed), "HOME": str(home)}


def timed(command: Sequence[str], environment: Mapping[str, str]) -> Took:
    began, before = time.perf_counter(), os.times()
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return Took(seconds=time.perf_counter() - began, processor=used)


def operations(commands: Mapping[str, Sequence[str]], environment: Mapping[str, str]) -> dict[str, int]:
    """Billed storage operations of the commands that read the ledger."""
    found: dict[str, int] = {}
    for name in (LS, FILTERED, STATUS):
        done = subprocess.run(
            [*commands[name], "--verbose"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        (number,) = _OPERATIONS.findall(done.stderr)
        found[name] = int(number)
    return found


def report(measured: Mapping[str, Sequence[Took]], operations: Mapping[str, int]) -> int:
    """Print every command's times beside its limit; 1 if one is broken."""
    medians = {name: statistics.median(each.seconds for each in took) for name, took in measured.items()}
    fastest = {name: min(each.seconds for each in took) for name, took in measured.items()}
    gcloud = fastest.get(GCLOUD)
    print(
        f"{'':18}{'median':>8}  {'fastest':>8}  {'limit':>6}  {'processor':>9}  {'operations':>10}  {'of gcloud':>9}"
    )
    for name, median in medians.items():
        limit = f"{LIMITS_S[name]:.1f} s" if name in LIMITS_S else "-"
        processor = statistics.median(each.processor for each in measured[name])
        ratio = f"{fastest[name] / gcloud:.2f}" if gcloud else "-"
        print(
            f"{name:18}{median:6.2f} s  {fastest[name]:6.2f} s  {limit:>6}  {processor:7.2f} s  "
            f"{operations.get(name, '-'):>10}  {ratio:>9}"
        )
    broken = [name for name, limit in LIMITS_S.items() if fastest[name] >= limit]
    broken += ["storage operations of ls"] if operations[LS] >= LS_OPERATIONS_MAX else []
    broken += ["ls beside gcloud"] if gcloud and fastest[LS] > OF_GCLOUD * gcloud else []
    print(f"limits: {'kept' if not broken else 'broken: ' + ', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
