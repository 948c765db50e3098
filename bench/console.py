"""The console's pages with 10,000 runs in the ledger: how long each takes, when an upload is seen, and the memory.

python bench/console.py [--rounds 5] [--runs 10000]

Every page is opened once, after which the resident memory is read; then the pages take turns. A page's time is that of its whole
HTML over one connection, without the browser's drawing. Limits apply to the fastest, because other work on the machine only
adds to the time; the first time has the imports of a page in it. Then requests are uploaded while the Overview is open:
each takes the time from the end of its upload to the first change of the page that shows its run. The exit status says whether every limit holds. Linux only, as bench/stack_start.py.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

import httpx  # noqa: E402  # needs the line above
import psutil  # noqa: E402

from bench.cli import fill  # noqa: E402
from bench.stack_start import descendants  # noqa: E402
from tests.e2e.project import Project, request, running_project  # noqa: E402
from trainmaster.client.clients import Clients  # noqa: E402
from trainmaster.client.context import context_of_stack  # noqa: E402
from trainmaster.client.runs.listing import KeptIndex  # noqa: E402
from trainmaster.web.pages import SUBJECTS  # noqa: E402
from trainmaster.web.pages.runs import SEARCHED_MAX  # noqa: E402
from trainmaster.web.source import AnswerAge  # noqa: E402

PAGE_S, PAGING_S = 0.5, 0.3
SEEN_S = 1.5
MEMORY_MIB = 160
PROJECT = "bench-console"
PAGING = "/runs?before="
SORTED = "/runs?sort=-accuracy"
SORTED_OPERATIONS = 10
"""Of each look at the sorted list."""
PAUSE_S = 1.2 * AnswerAge.SLOW.value[0]
"""Between two rounds, so that pages are read again, but for what the console keeps longer than that."""


def console_of(stack: int) -> int:
    """The process of the console beside a stack."""
    for pid in descendants(stack):
        if {b"web", b"--listener"} <= set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")):
            return pid
    raise RuntimeError("the console has no process: it starts with the first request")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=10_000)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        running_project(Path(folder) / "state", "--console", "write", project=PROJECT) as project,
    ):
        run_id = fill(project, asked.runs)
        paths = list(addresses(run_id))
        with httpx.Client(base_url=project.env["TRAINMASTER_CONSOLE"], timeout=60) as browser:
            first = {path: opened(browser, path) for path in paths}
            memory = psutil.Process(console_of(project.process.pid)).memory_info().rss / 2**20
            took: dict[str, list[float]] = {path: [] for path in paths}
            for _ in range(asked.rounds):
                time.sleep(PAUSE_S)
                for path in paths:
                    took[path].append(opened(browser, path))
            operations = operations_of_look(project)
            seen = [seen_after(browser, project, f"seen{number}") for number in range(asked.rounds)]
        return report(first, took, seen, memory, operations)


def addresses(run_id: str) -> Iterator[str]:
    """Every page, those of a run with this id, and a later page of the runs, and a filter that searches all of them."""
    for subject in SUBJECTS:
        for route in subject.pages:
            path = route.path.replace("{run_id}", run_id)
            if "{" not in path and not route.takes_form:
                yield path
    yield f"{PAGING}2026-01-05T00:00:00Z"
    yield "/runs?state=failed"
    yield SORTED


def opened(browser: httpx.Client, path: str) -> float:
    """Seconds; a page may say that the run has no study, or that no runs are marked."""
    began = time.perf_counter()
    answer = browser.get(path)
    assert answer.status_code in (200, 400, 404, 422), (path, answer.status_code, answer.text[-2000:])
    return time.perf_counter() - began


def operations_of_look(project: Project) -> list[int]:
    """The storage operations of two looks at the index, as the sorted list makes them: the first, and a later one."""
    with Clients(context_of_stack(project.env, project.state)) as clients:
        kept, counts = KeptIndex(clients), []
        for _ in range(2):
            before = clients.storage_calls
            kept.look(SEARCHED_MAX)
            counts.append(clients.storage_calls - before)
    return counts


def seen_after(browser: httpx.Client, project: Project, name: str) -> float:
    """Seconds until the open Overview shows the run of a request that is uploaded."""
    began = None
    with browser.stream("GET", "/", headers={"accept": "text/event-stream"}) as changes:
        for line in changes.iter_lines():
            if began is None and line.startswith("data: "):
                project.upload(f"requests/{name}.json", request(PROJECT, model_name=name))
                began = time.perf_counter()
            elif began is not None and f"{name}-" in line:
                return time.perf_counter() - began
    raise AssertionError(f"the Overview's stream ended before it showed {name}")


def report(
    first: Mapping[str, float],
    took: Mapping[str, Sequence[float]],
    seen: Sequence[float],
    memory: float,
    operations: Sequence[int],
) -> int:
    """Print each page's times beside its limit, the times until uploads were seen, and the memory; 1 if a limit is broken."""
    broken = []
    print(f"{'':44}{'first':>8}{'median':>9}{'fastest':>9}{'limit':>7}")
    for path, seconds in took.items():
        limit = PAGING_S if path.startswith(PAGING) else PAGE_S
        print(
            f"{path[:43]:44}{first[path]:6.2f} s{statistics.median(seconds):7.2f} s{min(seconds):7.2f} s{limit:5.1f} s"
        )
        broken += [path] if min(seconds) > limit else []
    print(
        f"{'an upload seen on the open Overview':44}{'':8}{statistics.median(seen):7.2f} s{min(seen):7.2f} s{SEEN_S:5.1f} s"
    )
    broken += ["the Overview's change"] if min(seen) > SEEN_S else []
    print(
        f"storage operations of {SORTED}: first {operations[0]}, then {operations[1]}, limit {SORTED_OPERATIONS - 1}"
    )
    broken += ["operations"] if max(operations) >= SORTED_OPERATIONS else []
    broken += ["memory"] if memory > MEMORY_MIB else []
    print(f"memory: {memory:.0f} MiB, limit {MEMORY_MIB} MiB")
    print(f"limits: {'kept' if not broken else 'broken: ' + ', '.join(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
