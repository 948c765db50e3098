"""Time until the local stack is ready, and its idle memory, beside another checkout's.

python bench/stack_start.py [--starts 5] [--against DIR]

Every start has a separate state folder. The sides take turns, so that whatever else the machine does meets both.
Linux only: memory is the proportional set size that /proc gives.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.2
"""How much slower or larger than the other checkout a stack may be."""
READY_S, IDLE_MIB = 1.5, 180.0
"""Limits of the fastest start, on two quiet cores, and of the memory."""
HERE, OTHER = "this checkout", "the other"
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
    """1 when this checkout is over a limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout to compare with")
    arguments = parser.parse_args()
    sides = {HERE: ROOT} | ({OTHER: arguments.against.resolve()} if arguments.against else {})
    for tree in sides.values():  # compiles what has no byte code yet
        measured(tree)
    starts: dict[str, list[Start]] = {name: [] for name in sides}
    for _ in range(arguments.starts):
        for name, tree in sides.items():
            starts[name].append(measured(tree))
    return report(starts)


def report(starts: Mapping[str, Sequence[Start]]) -> int:
    """Print the medians and how they compare; 1 when one is over its limit."""
    medians = {
        name: Start(
            **{
                each.name: statistics.median(getattr(start, each.name) for start in side)
                for each in fields(Start)
            }
        )
        for name, side in starts.items()
    }
    fastest = {name: min(start.seconds for start in side) for name, side in starts.items()}
    print(f"{'':16}{'ready':>10}{'fastest':>10}{'processor':>12}{'idle':>12}   median of {len(starts[HERE])}")
    for name, side in medians.items():
        print(
            f"{name:16}{side.seconds:>8.2f} s{fastest[name]:>8.2f} s{side.processor:>10.2f} s{side.mib:>8.0f} MiB"
        )
    here = medians[HERE]
    print(f"{'limit':26}{READY_S:>8.2f} s{IDLE_MIB:>20.0f} MiB")
    is_over = fastest[HERE] > READY_S or here.mib > IDLE_MIB
    if (other := medians.get(OTHER)) is None:
        return int(is_over)
    ready, idle = here.seconds / other.seconds, here.mib / other.mib
    processor = here.processor / other.processor
    print(f"{'ratio':16}{ready:>10.2f}{processor:>22.2f}{idle:>12.2f}   limit of ready and idle {LIMIT}")
    return int(is_over or max(ready, idle) > LIMIT)


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
            processor = sum(map(processor_s, descendants(stack.pid)))
            time.sleep(IDLE_AFTER_S)
            return Start(
                seconds=seconds,
                processor=processor,
                mib=sum(map(pss_mib, descendants(stack.pid))),
            )
        finally:
            stack.terminate()
            stack.wait()


def descendants(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from descendants(int(child))


def processor_s(pid: int) -> float:
    """What it and its ended children used. Source: proc_pid_stat(5), utime to cstime."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def pss_mib(pid: int) -> float:
    """Its own memory and its share of what it shares. Source: proc_pid_smaps_rollup(5)."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"/proc/{pid}/smaps_rollup has no line Pss")


if __name__ == "__main__":
    sys.exit(main())
