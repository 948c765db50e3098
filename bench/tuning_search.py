"""Default search against random search at equal trials: `python -m bench.tuning_search`.

Three standard functions, all minimised, with log, discrete and conditional parameters; prints the median of
the best value over all seeds, then the cost of the 1,000th suggestion.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping

from emulators.tuning.space import Child, Choice, Double, Integer, Parameter, Scale, Value
from emulators.tuning.suggest import Algorithm, Suggestions

SEEDS, TRIALS = 20, 40
Point = Mapping[str, Value]


def double(name: str, low: float, high: float, scale: Scale = Scale.LINEAR) -> Parameter:
    return Parameter(parameter_id=name, path=name, domain=Double(low=low, high=high), scale=scale)


def branin(at: Point) -> float:
    x, y = float(at["x"]), float(at["y"])
    bent = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bent**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def log_rosenbrock(at: Point) -> float:
    """Rosenbrock over the logarithms of two positive numbers, with a third that must hit one of ten values."""
    x, y, z = math.log10(float(at["a"])), math.log10(float(at["b"])), float(at["c"])
    return 100 * (y - x * x) ** 2 + (1 - x) ** 2 + (math.log2(z) - 5) ** 2


def conditional_sphere(at: Point) -> float:
    """A sphere whose dimensions depend on the kind that is chosen."""
    if at["kind"] == "sgd":
        rate, momentum = math.log10(float(at["rate"])), float(at["momentum"])
        return (rate + 2) ** 2 + 10 * (momentum - 0.9) ** 2
    return 1 + (float(at["layers"]) - 3) ** 2


LOG_ROSENBROCK = [
    double("a", 1e-2, 1e2, Scale.LOG),
    double("b", 1e-2, 1e2, Scale.LOG),
    Parameter(
        parameter_id="c",
        path="c",
        domain=Choice(values=tuple(float(2**power) for power in range(10)), ordered=True),
    ),
]
CONDITIONAL = [
    Parameter(
        parameter_id="kind",
        path="kind",
        domain=Choice(values=("sgd", "tree"), ordered=False),
        children=(
            Child(parent_values=frozenset({"sgd"}), parameter=double("rate", 1e-5, 1.0, Scale.LOG)),
            Child(parent_values=frozenset({"sgd"}), parameter=double("momentum", 0.0, 1.0)),
            Child(
                parent_values=frozenset({"tree"}),
                parameter=Parameter(parameter_id="layers", path="layers", domain=Integer(low=1, high=9)),
            ),
        ),
    )
]
FUNCTIONS: list[tuple[str, list[Parameter], Callable[[Point], float]]] = [
    ("Branin", [double("x", -5, 10), double("y", 0, 15)], branin),
    ("Rosenbrock, log and discrete", LOG_ROSENBROCK, log_rosenbrock),
    ("sphere, conditional", CONDITIONAL, conditional_sphere),
]


def best(
    space: list[Parameter], function: Callable[[Point], float], algorithm: Algorithm, seed: int
) -> float:
    search = Suggestions(space, algorithm=algorithm, maximize=[False], seed=seed)
    values: list[float] = []
    for number in range(1, TRIALS + 1):
        point = search.next(str(number))
        assert point is not None
        values.append(function(point))
        search.tell(str(number), [values[-1]])
    return min(values)


def last_suggestions_ms(count: int = 1000, last: int = 20) -> float:
    """The mean cost of the last suggestions of a study of three parameters."""
    search = Suggestions(LOG_ROSENBROCK, algorithm=Algorithm.BAYESIAN, maximize=[False], seed=1)
    times: list[float] = []
    for number in range(1, count + 1):
        began = time.perf_counter()
        point = search.next(str(number))
        times.append(time.perf_counter() - began)
        assert point is not None
        search.tell(str(number), [log_rosenbrock(point)])
    return statistics.fmean(times[-last:]) * 1000


def main() -> None:
    print(f"median best of {TRIALS} trials over {SEEDS} seeds (less is better)")
    for name, space, function in FUNCTIONS:
        ours, chance = (
            statistics.median(best(space, function, algorithm, seed) for seed in range(SEEDS))
            for algorithm in (Algorithm.BAYESIAN, Algorithm.RANDOM)
        )
        print(f"{name:30} default {ours:10.4f}   random {chance:10.4f}   ratio {ours / chance:.2f}")
    print(f"a suggestion after 980 to 999 trials: {last_suggestions_ms():.1f} ms")


if __name__ == "__main__":
    main()
