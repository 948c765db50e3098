"""What a receiver of notices that never answers costs runs: the same runs with it, and with one that answers at once.

python bench/slow_receiver.py [--runs 20] [--limit-ms 50]

Real: two stacks side by side, with the same policy but for the receiver's URL, which gets a notice of every state. The runs
are uploaded to one stack after the other, in alternating order, so that both meet the same machine. A run's time is from its
upload to its end on record. Exits with 1 if the median with the receiver that hangs is more than the limit above the other.
"""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from bench.reckoning import STUB, stub_request, stub_uri  # noqa: E402
from tests.e2e.project import Project, running_project  # noqa: E402  # needs the line above
from trainstack.stack.receiver import RECEIVED  # noqa: E402

PATHS = {"answers": "/chat", "hangs": "/chat/answer=hang"}
STATES = "reserved, waiting, submitted, running, succeeded"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="with each receiver")
    parser.add_argument("--limit-ms", type=float, default=50.0)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # or the stacks would outlive it
    found: dict[str, list[float]] = {name: [] for name in PATHS}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stacks:
        projects = {name: stacks.enter_context(notified(Path(folder), name)) for name in PATHS}
        for number in range(given.runs + 1):
            for name in list(PATHS)[:: 1 if number % 2 else -1]:
                took_s = run_s(projects[name])
                if number:  # the first starts the functions
                    found[name].append(took_s)
        sent = {
            name: len((each.state / RECEIVED).read_text().splitlines()) for name, each in projects.items()
        }
    return report(found, sent, given.limit_ms)


@contextmanager
def notified(folder: Path, name: str) -> Iterator[Project]:
    """A stack whose policy has a receiver at this path."""
    policy, state, project = folder / f"{name}.yaml", folder / name, f"bench-{name}"
    url = f"http://receiver.localhost{PATHS[name]}"
    receiver = f'{{name: chat, webhook: {{url: "{url}", secret: key}}, when: {{states: [{STATES}]}}}}'
    policy.write_text((ROOT / "functions/policy.yaml").read_text() + f"notify: [{receiver}]\n")
    flags = ("--image", f"{stub_uri(project)}={STUB}", "--policy", str(policy))
    with running_project(state, *flags, project=project) as running:
        (state / "secrets" / "key").write_text("key")
        yield running


def run_s(project: Project) -> float:
    """Seconds from the upload of a request to the end of its run."""
    name, began = f"requests/run-{time.monotonic_ns()}.json", datetime.now(UTC)
    generation = project.upload(name, stub_request(project.id))
    record = project.record(project.final_status(name, generation)["run_id"])
    assert record["state"] == "succeeded", record
    return (datetime.fromisoformat(record["history"][-1]["at"]) - began).total_seconds()


def report(found: dict[str, list[float]], sent: dict[str, int], limit_ms: float) -> int:
    print(f"{'receiver':<10}{'runs':>6}{'median':>10}{'p90':>10}{'notices tried':>16}")
    for name, times in found.items():
        p90 = statistics.quantiles(times, n=10)[-1]
        print(f"{name:<10}{len(times):>6}{statistics.median(times):>8.3f} s{p90:>8.3f} s{sent[name]:>16}")
    answers, hangs = (statistics.median(found[name]) for name in PATHS)
    more_ms = 1000 * (hangs - answers)
    kept = more_ms <= limit_ms
    print(
        f"ratio {hangs / answers:.3f}, difference {more_ms:.0f} ms, limit {limit_ms:.0f} ms: {'kept' if kept else 'broken'}"
    )
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
