"""Fuzzed inputs for every parser of what comes from outside: none may raise what the parser does not name.

python bench/fuzz.py [--inputs 100000] [--seed 1] [--parser NAME] [--processes 2]

Inputs are the examples with values replaced, removed, renamed and moved, bytes spoiled, and plain noise. Each is
drawn from the seed, the parser and its number alone: `--parser NAME --number N` runs one again and shows it.
100,000 of each take about a quarter of an hour of one processor's time.
Exits with 1 when any input broke a promise: an unnamed exception, a refusal without a reason, a run outside its
prefix, a text that would leave its line.
"""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "functions")]  # run as a file, from anywhere

from tests.core.fuzz.parsers import PARSERS, Finding, Parser, Verdict, fed, random_of  # noqa: E402  # needs the line above

BLOCK = 500


@dataclass(kw_only=True)
class Tally:
    """What became of the inputs of one parser; `slowest` is seconds and number of the slowest input."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    findings: dict[str, tuple[int, Finding]] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, 0)
    seconds: float = 0.0

    def take(self, other: "Tally") -> None:
        self.verdicts += other.verdicts
        self.slowest = max(self.slowest, other.slowest)
        self.seconds += other.seconds
        for error, (count, finding) in other.findings.items():
            before, first = self.findings.get(error, (0, finding))
            self.findings[error] = (before + count, first)

    @property
    def broken(self) -> int:
        return sum(count for count, _ in self.findings.values())


def block(parser_index: int, seed: int, first: int, last: int) -> Tally:
    """The inputs from `first` to before `last`, one after the other."""
    parser, tally = PARSERS[parser_index], Tally()
    for number in range(first, last):
        began = time.perf_counter()
        found = fed(parser, seed, number)
        taken = time.perf_counter() - began
        tally.seconds += taken
        tally.slowest = max(tally.slowest, (taken, number))
        if isinstance(found, Finding):
            key = found.error[:80]
            count, first_found = tally.findings.get(key, (0, found))
            tally.findings[key] = (count + 1, first_found)
        else:
            tally.verdicts[found] += 1
    return tally


def run(indexes: list[int], inputs: int, seed: int, processes: int) -> Iterator[tuple[Parser, Tally]]:
    with ProcessPoolExecutor(processes) as pool:
        starts = range(0, inputs, BLOCK)
        asked = [
            [pool.submit(block, index, seed, start, min(start + BLOCK, inputs)) for start in starts]
            for index in indexes
        ]
        for index, blocks in zip(indexes, asked, strict=True):
            whole = Tally()
            for each in blocks:
                whole.take(each.result())
            yield PARSERS[index], whole


def show(parser: Parser, tally: Tally) -> None:
    verdicts = "  ".join(f"{tally.verdicts[verdict]:>9}" for verdict in Verdict)
    slowest = f"{tally.slowest[0] * 1000:.0f} ms"
    print(
        f"{parser.name:<26}{verdicts}  {tally.broken:>9}  {slowest:>9}  {tally.seconds:>8.0f} s", flush=True
    )
    for count, finding in tally.findings.values():
        print(f"  {count} times, first at --number {finding.number}: {finding.error}")
        print(f"    {finding.given}")


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--inputs", type=int, default=100_000, help="of each parser")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--parser", choices=[parser.name for parser in PARSERS], help="only this one")
    options.add_argument("--number", type=int, help="only this input of the parser, shown")
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = options.parse_args()
    indexes = [index for index, parser in enumerate(PARSERS) if asked.parser in (None, parser.name)]
    if asked.number is not None:
        for index in indexes:
            parser = PARSERS[index]
            print(parser.name, parser.draw(random_of(asked.seed, parser, asked.number)))
            print(fed(parser, asked.seed, asked.number))
        return 0
    print(f"{asked.inputs} inputs each, seed {asked.seed}")
    names = "  ".join(f"{verdict:>9.9}" for verdict in ("taken", "passed by", "refused"))
    print(f"{'parser':<26}{names}  {'broken':>9}  {'slowest':>9}  {'seconds':>10}")
    broken = 0
    for parser, tally in run(indexes, asked.inputs, asked.seed, asked.processes):
        show(parser, tally)
        broken += tally.broken
    print(f"inputs that broke a promise: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
