"""Default search against random search at equal trials: `python bench/tuning_search.py`.

Three standard functions with logarithmic, discrete and conditional parameters, all minimised, through the same code
as a tuning job: the request's JSON is checked, its space read, values are requested and results reported.
Prints the median over all seeds of the best value found; exits with 1 where random search found a better one.

Source of the functions: S. Surjanovic and D. Bingham, Virtual Library of Simulation Experiments,
https://www.sfu.ca/~ssurjano/optimization.html, with their usual domains.
"""

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from trainstack.tuning.suggest import Algorithm, TrialSuggestions, space_of
from trainstack.tuning.tuning_job import TuningJob, Value

SEEDS, TRIALS, AT_ONCE = 30, 100, 2
Point = Mapping[str, Value]
Json = dict[str, Any]


def branin(x: float, y: float) -> float:
    """Least: 0.397887, at (-pi, 12.275), (pi, 2.275) and (9.42478, 2.475)."""
    bent = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bent**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def rosenbrock(x: Sequence[float]) -> float:
    """Least: 0, at (1, …, 1)."""
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in pairwise(x))


def ackley(x: Sequence[float]) -> float:
    """Least: 0, at (0, …, 0)."""
    spread = math.sqrt(sum(a * a for a in x) / len(x))
    waves = sum(math.cos(2 * math.pi * a) for a in x) / len(x)
    return 20 + math.e - 20 * math.exp(-0.2 * spread) - math.exp(waves)


_ALPHA = (1.0, 1.2, 3.0, 3.2)
_A = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886), (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650), (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)  # fmt: skip


def hartmann(x: Sequence[float]) -> float:
    """Least: -3.32237, at (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)."""
    return -sum(
        alpha * math.exp(-sum(a * (at - p) ** 2 for a, at, p in zip(row, x, places, strict=True)))
        for alpha, row, places in zip(_ALPHA, _A, _P, strict=True)
    )


def double(name: str, low: float, high: float, *, log: bool = False) -> Json:
    scale = {"scaleType": "UNIT_LOG_SCALE"} if log else {}
    return {"parameterId": name, "doubleValueSpec": {"minValue": low, "maxValue": high}, **scale}


def discrete(name: str, values: Sequence[float]) -> Json:
    return {"parameterId": name, "discreteValueSpec": {"values": list(values)}}


def under(value: str, parameter: Json) -> Json:
    return {"parameterSpec": parameter, "parentCategoricalValues": {"values": [value]}}


# Branin: the first coordinate is the logarithm of what is searched, the second one of 16 values.
BRANIN = [double("x", math.exp(-5), math.exp(10), log=True), discrete("y", range(16))]

# Hartmann in six dimensions: two logarithmic over three decades, two of eleven values each, two plain.
HARTMANN = [
    *(double(f"x{at}", 1e-3, 1.0, log=True) for at in (0, 1)),
    *(discrete(f"x{at}", [tenth / 10 for tenth in range(11)]) for at in (2, 3)),
    *(double(f"x{at}", 0, 1) for at in (4, 5)),
]

# Which of two functions is met depends on the value of a third parameter, and so do their coordinates.
CHOICE = [
    {
        "parameterId": "kind",
        "categoricalValueSpec": {"values": ["ackley", "rosenbrock"]},
        "conditionalParameterSpecs": [
            *(under("ackley", double(f"a{at}", -32.768, 32.768)) for at in range(3)),
            under("rosenbrock", double("r0", 1e-2, 10, log=True)),
            under("rosenbrock", double("r1", 1e-2, 10, log=True)),
            under("rosenbrock", discrete("r2", [0.25, 0.5, 1, 2, 4, 8])),
        ],
    }
]


def choice(at: Point) -> float:
    if at["kind"] == "ackley":
        return ackley([float(at[f"a{number}"]) for number in range(3)])
    return rosenbrock([float(at[f"r{number}"]) for number in range(3)])


FUNCTIONS: list[tuple[str, list[Json], Callable[[Point], float]]] = [
    ("Branin: log, discrete", BRANIN, lambda at: branin(math.log(float(at["x"])), float(at["y"]))),
    ("Hartmann 6: log, discrete", HARTMANN, lambda at: hartmann([float(at[f"x{n}"]) for n in range(6)])),
    ("Ackley or Rosenbrock: conditional", CHOICE, choice),
]


def body_of(parameters: Sequence[Json], algorithm: str, *, trials: int, at_once: int) -> Json:
    container = {"imageUri": "us-docker.pkg.dev/p/repo/image"}
    pool = {"machineSpec": {"machineType": "n1-standard-4"}, "replicaCount": 1, "containerSpec": container}
    study = {
        "metrics": [{"metricId": "y", "goal": "MINIMIZE"}],
        "parameters": list(parameters),
        "algorithm": algorithm,
    }
    return {
        "displayName": "bench",
        "maxTrialCount": trials,
        "parallelTrialCount": at_once,
        "studySpec": study,
        "trialJobSpec": {"workerPoolSpecs": [pool]},
    }


def best(parameters: Sequence[Json], function: Callable[[Point], float], algorithm: str, seed: int) -> float:
    body = body_of(parameters, algorithm, trials=TRIALS, at_once=AT_ONCE)
    job = TuningJob.parse(body, project="1", location="us-central1", job_id="1", at=datetime.now(UTC))
    study = job.message.study_spec
    search = TrialSuggestions(
        space_of(study), algorithm=Algorithm(study.algorithm), maximize=job.maximize, seed=seed
    )
    values: list[float] = []
    running: list[tuple[str, float]] = []
    for number in range(1, TRIALS + 1):
        point = search.next(str(number))
        assert point is not None
        running.append((str(number), function(point)))
        if len(running) == AT_ONCE or number == TRIALS:
            for trial_id, value in running:
                search.tell(trial_id, [value])
                values.append(value)
            running.clear()
    return min(values)


def main() -> int:
    print(f"median of the best of {TRIALS} trials, {AT_ONCE} at a time, over {SEEDS} seeds; less is better")
    print(f"{'':34} {'default':>10} {'random':>10}   seeds won")
    fine = True
    for name, parameters, function in FUNCTIONS:
        ours, chance = (
            [best(parameters, function, algorithm, seed) for seed in range(SEEDS)]
            for algorithm in ("ALGORITHM_UNSPECIFIED", "RANDOM_SEARCH")
        )
        won = sum(mine <= theirs for mine, theirs in zip(ours, chance, strict=True))
        print(
            f"{name:34} {statistics.median(ours):10.4f} {statistics.median(chance):10.4f}   {won} of {SEEDS}"
        )
        fine = fine and statistics.median(ours) <= statistics.median(chance)
    if not fine:
        print("random search found a better median than the default")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
