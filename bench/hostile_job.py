"""What a hostile job costs others: how long an honest upload waits for its run's start, beside each kind of attack.

python bench/hostile_job.py [ATTACK…] [--uploads 5] [--memory-mib 1024] [--processes 500]

Real: the stack, its functions and its emulators, and a job of the default isolation that lists and searches with
patterns that backtrack, fills its bucket with files that cost it nothing, hoards memory, opens connections to the
gateway and its metadata server, floods the log, and forks: each alone, then all at once. See hostile/program.py.
The bounds of the job's control group are lowered to the options, so that the machine stays usable; where the user may
make no group, nothing bounds the attack, and the benchmark refuses to run.
Exits with 1 when an upload beside an attack waits more than two seconds longer than the median without one.
"""

import argparse
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import httpx
from google.cloud.aiplatform_v1.types import CustomJob

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from bench.reckoning import STUB, stub_request, stub_uri  # noqa: E402
from tests.e2e.project import Project, image_uri, running_project  # noqa: E402  # needs the line above

PROJECT = "bench-hostile"
LONGER_S = 2.0
ATTACKS = ("patterns", "files", "memory", "sockets", "logs", "forks")
PROGRAM = Path(__file__).parent / "hostile" / "program.py"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "attacks",
        nargs="*",
        metavar="ATTACK",
        choices=[*ATTACKS, []],
        help="all of them unless some are named",
    )
    parser.add_argument("--uploads", type=int, default=5, help="beside each attack")
    parser.add_argument("--memory-mib", type=int, default=1024)
    parser.add_argument("--processes", type=int, default=500)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or the stack and the attack would outlive it
    bounds = {"pids.max": arguments.processes}
    bounds |= dict.fromkeys(("memory.max", "memory.limit_in_bytes"), arguments.memory_mib << 20)
    with tempfile.TemporaryDirectory() as folder:
        flags = ("--image", f"{stub_uri(PROJECT)}={STUB}")
        with running_project(Path(folder) / "state", *flags, project=PROJECT) as project:
            waits(project, 1)  # the first starts the functions
            alone = waits(project, arguments.uploads)
            limit = statistics.median(alone) + LONGER_S
            print(f"{'no attack':<12}median {statistics.median(alone):.2f} s, longest {max(alone):.2f} s")
            longest = 0.0
            chosen = tuple(arguments.attacks) or ATTACKS
            for attacks in (*((each,) for each in chosen), *([chosen] if len(chosen) > 1 else [])):
                with attack(project, attacks, bounds):
                    found = waits(project, arguments.uploads)
                name = "all at once" if len(attacks) > 1 else attacks[0]
                print(f"{name:<12}median {statistics.median(found):.2f} s, longest {max(found):.2f} s")
                longest = max(longest, *found)
    print(f"limit {limit:.2f} s: {'kept' if longest <= limit else 'broken'}")
    return 0 if longest <= limit else 1


def waits(project: Project, uploads: int) -> list[float]:
    """Seconds from each of these uploads, one after the other, to the start of its job."""
    found = []
    for _ in range(uploads):
        name = f"requests/honest-{time.monotonic_ns()}.json"
        began = datetime.now(UTC)
        generation = project.upload(name, stub_request(project.id))
        run_id = project.final_status(name, generation)["run_id"]
        (job,) = project.jobs(run_id)
        found.append((job.start_time - began).total_seconds())
    return found


@contextmanager
def attack(project: Project, attacks: tuple[str, ...], bounds: dict[str, int]) -> Iterator[None]:
    """A job that does these from the beginning to the end of the block."""
    go = f"hostile/{'-'.join(attacks)}/go"
    spec = {
        "machine_spec": {"machine_type": "n1-standard-4"},
        "replica_count": 1,
        "container_spec": {
            "image_uri": f"{image_uri(project.id)}:1",
            "command": ["python", "-c", PROGRAM.read_text(), f"/gcs/{project.models}/{go}"],
            "args": list(attacks),
            "env": [{"name": "LOG_READER", "value": log_reader(project)}],
        },
    }
    message = CustomJob({"display_name": "hostile", "job_spec": {"worker_pool_specs": [spec]}})
    parent = f"projects/{project.id}/locations/{project.region}"
    job = project.vertex.create_custom_job(parent=parent, custom_job=message).name
    project.eventually(
        lambda: bound(job.rpartition("/")[2], bounds) or None,
        "a bounded job; may this user make control groups?",
    )
    path = project.folder(project.models) / go
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    time.sleep(3)  # until the attack has reached its bounds
    try:
        yield
    finally:
        project.vertex.cancel_custom_job(name=job)
        project.eventually(
            lambda: project.vertex.get_custom_job(name=job).state.name == "JOB_STATE_CANCELLED" or None,
            "the hostile job's end",
        )
        subprocess.run(["rm", "-rf", path.parent], check=True)  # Python's own cannot remove folders so deep


def log_reader(project: Project) -> str:
    """The token of an account that may read logs."""
    url = f"{project.env['IAM_EMULATOR_HOST']}/v1/projects/-/serviceAccounts/tm-on-job-log@{project.id}.iam.gserviceaccount.com"
    scope = {"scope": ["https://www.googleapis.com/auth/cloud-platform"]}
    return str(httpx.post(f"{url}:generateAccessToken", json=scope, timeout=60).json()["accessToken"])


def bound(job_id: str, bounds: dict[str, int]) -> bool:
    """Whether the job has a group, which has these bounds now."""
    found = [
        group / name
        for group in Path("/sys/fs/cgroup").rglob(f"trainmaster-{job_id}-*")
        for name in bounds
        if (group / name).exists() and (group / "cgroup.procs").read_text()
    ]
    for path in found:
        path.write_text(f"{bounds[path.name]}")
    return len(found) > 1


if __name__ == "__main__":
    sys.exit(main())
