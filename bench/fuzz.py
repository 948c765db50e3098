"""Fuzzed inputs for every parser of what comes from outside: none may raise what the parser does not name.

python bench/fuzz.py [--inputs 100000] [--seed 1] [--parser NAME] [--processes 2]
python bench/fuzz.py --surfaces [--inputs 10000] [--seed 1] [--surface NAME]

The second sends requests of any form to the emulators and the functions, each started for it: none may bring
a server down, lead out of its folder, be taken from another site, or be answered 5xx by accident.

Inputs are the examples with values replaced, removed, renamed and moved, bytes spoiled, and plain noise. Each is
drawn from the seed, the parser and its number alone: `--parser NAME --number N` runs one again and shows it, and
`--surface NAME --number N` sends one again.
100,000 of each take about a quarter of an hour of one processor's time.
Exits with 1 when any input broke a promise: an unnamed exception, a refusal without a reason, a run outside its
prefix, a text that would leave its line, or more than 0.5 s of processor time.
"""

import argparse
import gc
import logging
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]  # run as a file, from anywhere

from tests.core.fuzz.parsers import PARSERS  # noqa: E402  # needs the line above
from tests.core.fuzz.verdicts import Finding, Verdict, fed, random_of  # noqa: E402  # as above
from tests.stack.fuzz.surfaces import SURFACES, Surface, fed_wire, guarded  # noqa: E402  # as above

gc.freeze()  # as functions/main.py does

BLOCK = 500
SLOW_S = 0.5
"""Processor time that no parser may take for one input."""


@dataclass(kw_only=True)
class Tally:
    """The results of one parser's inputs; `slowest` is seconds and number of the slowest input."""

    verdicts: Counter[Verdict] = field(default_factory=Counter)
    findings: dict[str, tuple[int, Finding]] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, 0)
    seconds: float = 0.0

    def note(self, found: Verdict | Finding, taken_s: float, number: int) -> None:
        self.seconds += taken_s
        self.slowest = max(self.slowest, (taken_s, number))
        if isinstance(found, Finding):
            count, first_found = self.findings.get(found.error[:80], (0, found))
            self.findings[found.error[:80]] = (count + 1, first_found)
        else:
            self.verdicts[found] += 1

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
        began = time.process_time()  # others use the machine too
        found = fed(parser, seed, number)
        tally.note(found, time.process_time() - began, number)
    return tally


def sent(surface: Surface, numbers: Iterable[int], seed: int) -> Tally:
    """The requests to one surface, one after the other. Raises `Broken` when the server did not outlive them."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, guarded(surface, Path(folder)) as target:
        for number in numbers:
            began = time.perf_counter()
            found = fed_wire(target, surface.name, seed, number)
            tally.note(found, time.perf_counter() - began, number)
    return tally


def run(indexes: list[int], inputs: int, seed: int, processes: int) -> Iterator[tuple[str, Tally]]:
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
            yield PARSERS[index].name, whole


def show(name: str, tally: Tally) -> None:
    verdicts = "  ".join(f"{tally.verdicts[verdict]:>9}" for verdict in Verdict)
    slowest = _milliseconds(tally.slowest[0])
    print(f"{name:<26}{verdicts}  {tally.broken:>9}  {slowest:>9}  {tally.seconds:>8.0f} s", flush=True)
    for count, finding in tally.findings.values():
        print(f"  {count} times, first at --number {finding.number}: {finding.error}")
        print(f"    {finding.given}")


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--inputs", type=int, help="of each; default 100000 to parsers, 10000 to surfaces")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--parser", choices=[parser.name for parser in PARSERS], help="only this one")
    options.add_argument("--number", type=int, help="only this input; of a parser, shown")
    options.add_argument("--surfaces", action="store_true", help="requests to servers instead")
    options.add_argument("--surface", choices=[surface.name for surface in SURFACES], help="only this one")
    options.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = options.parse_args()
    indexes = [index for index, parser in enumerate(PARSERS) if asked.parser in (None, parser.name)]
    on_the_wire = asked.surfaces or asked.surface is not None
    if asked.number is not None and not on_the_wire:
        for index in indexes:
            parser = PARSERS[index]
            print(parser.name, parser.draw(random_of(asked.seed, parser, asked.number)))
            print(fed(parser, asked.seed, asked.number))
        return 0
    inputs = asked.inputs or (10_000 if on_the_wire else 100_000)
    numbers = range(inputs) if asked.number is None else range(asked.number, asked.number + 1)
    print(f"{len(numbers)} inputs each, seed {asked.seed}")
    names = "  ".join(f"{verdict:>9.9}" for verdict in ("taken", "passed by", "refused"))
    print(
        f"{'surface' if on_the_wire else 'parser':<26}{names}  {'broken':>9}  {'slowest':>9}  {'seconds':>10}"
    )
    if on_the_wire:
        logging.disable(logging.CRITICAL)  # the servers log every broken request
        tallies: Iterable[tuple[str, Tally]] = (
            (surface.name, sent(surface, numbers, asked.seed))
            for surface in SURFACES
            if asked.surface in (None, surface.name)
        )
    else:
        tallies = run(indexes, inputs, asked.seed, asked.processes)
    broken = 0
    for name, tally in tallies:
        show(name, tally)
        # A server also waits, and its time is not a processor's.
        broken += tally.broken + (not on_the_wire and tally.slowest[0] > SLOW_S)
    print(f"inputs that broke a promise: {broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
