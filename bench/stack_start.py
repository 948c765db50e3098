"""Time until the local stack is ready, and its idle memory: with the console, without it, and another checkout's.

python bench/stack_start.py [--starts 5] [--against DIR]

Every start has a separate state folder. The sides take turns, so that whatever else the machine does meets all of them.
The console may delay the stack by CONSOLE_S. Linux only: memory is the proportional set size that /proc gives.
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
"""How much slower or larger than the other checkout a stack may be, both as they start by default."""
CONSOLE_S = 1.0
"""How much later a stack may be ready with the console than without it."""
DEFAULT, ALONE, OTHER = "this checkout", "without console", "the other"
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
        console_mib: that of the console among it; 0 without one.
    """

    seconds: float
    processor: float
    mib: float
    console_mib: float = 0.0


def main() -> int:
    """1 when a median of this checkout is over its limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=5)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout to compare with")
    arguments = parser.parse_args()
    sides: dict[str, tuple[Path, Sequence[str]]] = {DEFAULT: (ROOT, ()), ALONE: (ROOT, ("--console", "off"))}
    if arguments.against:
        sides[OTHER] = (arguments.against.resolve(), ())
    for tree, words in sides.values():  # compiles what has no byte code yet
        measured(tree, words)
    starts: dict[str, list[Start]] = {name: [] for name in sides}
    for _ in range(arguments.starts):
        for name, (tree, words) in sides.items():
            starts[name].append(measured(tree, words))
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
    count = len(starts[DEFAULT])
    print(f"{'':16}{'ready':>10}{'processor':>12}{'idle':>12}{'its console':>14}   median of {count}")
    for name, side in medians.items():
        print(
            f"{name:16}{side.seconds:>8.2f} s{side.processor:>10.2f} s{side.mib:>8.0f} MiB{side.console_mib:>10.0f} MiB"
        )
    here, alone = medians[DEFAULT], medians[ALONE]
    later = here.seconds - alone.seconds
    print(f"with the console ready {later:+.2f} s later   limit {CONSOLE_S} s")
    if (other := medians.get(OTHER)) is None:
        return int(later > CONSOLE_S)
    ready, idle = here.seconds / other.seconds, here.mib / other.mib
    processor = here.processor / other.processor
    print(f"{'ratio':16}{ready:>10.2f}{processor:>12.2f}{idle:>12.2f}   limit of ready and idle {LIMIT}")
    return int(later > CONSOLE_S or max(ready, idle) > LIMIT)


def measured(tree: Path, words: Sequence[str]) -> Start:
    """One start of the checkout's stack with these options of `up`, which has ended when this returns."""
    module = "trainmaster" if (tree / "trainmaster" / "__main__.py").is_file() else "emulators"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        began = time.perf_counter()
        stack = subprocess.Popen(
            [sys.executable, "-m", module, "up", "--state", str(state), *words],
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
            console = console_of(stack.pid)
            return Start(
                seconds=seconds,
                processor=processor,
                mib=sum(map(pss_mib, descendants(stack.pid))),
                console_mib=pss_mib(console) if console else 0.0,
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


def console_of(stack: int) -> int:
    """The process of the console beside a stack; 0 if there is none."""
    for pid in descendants(stack):
        if {b"web", b"--listener"} <= set(Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")):
            return pid
    return 0


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
