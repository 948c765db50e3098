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
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from bench.reckoning import STUB, stub_uri  # noqa: E402  # as above
from bench.soaking.promises import Growth, broken, report, until_drained  # noqa: E402  # needs the line above
from bench.soaking.traffic import PROJECT, TROUBLES, USERS, Traffic  # noqa: E402  # as above
from tests.e2e.project import nothing_left, running_project  # noqa: E402  # as above
from tests.e2e.topologies import quick_topology  # noqa: E402  # as above

PHASE_S = 300
WARM_S = 120
"""Of a calm phase, before a function's memory counts."""
LIMIT_JOBS = 6


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
        traffic, growth = Traffic(project=stack.enter_context(start()), chance=chance), Growth()
        while time.monotonic() < until:
            calm_s = min(PHASE_S, max(10.0, (until - time.monotonic()) / 2))
            warm_s = min(WARM_S, calm_s / 2)
            traffic.phase(USERS, warm_s)
            growth.begin(traffic.project)
            traffic.phase(USERS, calm_s - warm_s)
            growth.end(traffic.project)
            traffic.phase(TROUBLES, calm_s / 2)
            if may_fill:
                traffic.fill_disk()
            token = traffic.project.token()
            traffic.project.process.kill()
            traffic.project.process.wait()
            stack.close()
            traffic.project.eventually(lambda: nothing_left(token), "no process outlives the killed stack")  # noqa: B023
            traffic.done["stack killed"] += 1
            traffic.project = stack.enter_context(start())
            traffic.phase(TROUBLES, calm_s / 4)
            traffic.repair()
            print(f"  {dict(traffic.done)}", file=sys.stderr, flush=True)
        drained = until_drained(traffic)
        found = broken(traffic, growth, drained_s=drained)
        token = traffic.project.token()
    if not nothing_left(token):
        found["processes left after the stack's end"] = ["some"]
    return report(traffic, growth, found)


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
