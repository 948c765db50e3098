"""Time until the local stack is ready, and its idle memory; against another checkout's in the same run.

python bench/stack_start.py [--starts 5] [--against DIR]

Every start has a separate state folder. With --against the two checkouts take turns, so that whatever else the
machine does meets both. Linux only: memory is the proportional set size that /proc gives.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.2
"""How much slower or larger than the other checkout a stack may be."""
IDLE_AFTER_S = 5.0
READY_WITHIN_S = 300.0
_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Start:
    """One start.

    Attributes:
        seconds: from before the process to the appearance of `stack.env`.
        processor: seconds of processor time that all its processes took until then, for machines that do other work.
        mib: idle memory of all its processes.
    """

    seconds: float
    processor: float
    mib: float


def main() -> int:
    """1 when this checkout's medians are more than LIMIT times the other's."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout to compare with")
    arguments = parser.parse_args()
    trees = [ROOT, *([arguments.against.resolve()] if arguments.against else [])]
    for tree in trees:  # compiles what has no byte code yet
        measured(tree)
    starts: dict[Path, list[Start]] = {tree: [] for tree in trees}
    for _ in range(arguments.starts):
        for tree in trees:
            starts[tree].append(measured(tree))
    return report(list(starts.values()))


def report(sides: list[list[Start]]) -> int:
    """Print the medians, and with two sides their ratios; 1 when that of time or memory exceeds LIMIT."""
    medians = [
        [
            statistics.median(getattr(start, name) for start in side)
            for name in ("seconds", "processor", "mib")
        ]
        for side in sides
    ]
    print(f"{'':16}{'ready':>10}{'processor':>12}{'idle':>12}   median of {len(sides[0])}")
    for name, (seconds, processor, mib) in zip(("this checkout", "the other"), medians, strict=False):
        print(f"{name:16}{seconds:>8.2f} s{processor:>10.2f} s{mib:>8.0f} MiB")
    if len(sides) == 1:
        return 0
    ready, processor, idle = (here / there for here, there in zip(*medians, strict=True))
    print(f"{'ratio':16}{ready:>10.2f}{processor:>12.2f}{idle:>12.2f}   limit of ready and idle {LIMIT}")
    return 0 if max(ready, idle) <= LIMIT else 1


def measured(tree: Path) -> Start:
    """One start of the checkout's stack, which has ended when this returns."""
    module = "trainmaster" if (tree / "trainmaster" / "__main__.py").is_file() else "emulators"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        began = time.perf_counter()
        stack = subprocess.Popen(
            [sys.executable, "-m", module, "up", "--state", str(state)],
            cwd=tree, env=environment, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            while not (state / "stack.env").exists():
                if stack.poll() is not None or time.perf_counter() - began > READY_WITHIN_S:
                    raise RuntimeError(f"the stack of {tree} did not start: status {stack.returncode}")
                time.sleep(_POLL_S)
            seconds = time.perf_counter() - began
            processor = sum(map(_processor_s, descendants(stack.pid)))
            time.sleep(IDLE_AFTER_S)
            return Start(seconds=seconds, processor=processor, mib=sum(map(_pss_mib, descendants(stack.pid))))
        finally:
            stack.terminate()
            stack.wait()


def descendants(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def _processor_s(pid: int) -> float:
    """What it and its ended children used. Source: proc_pid_stat(5), utime to cstime."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _pss_mib(pid: int) -> float:
    """Its own memory and its share of what it shares. Source: proc_pid_smaps_rollup(5)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/smaps_rollup has no line Pss")


if __name__ == "__main__":
    sys.exit(main())
