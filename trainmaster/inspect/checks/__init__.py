"""One room per check: what was examined goes in, findings come out; none reads anything else."""

from collections.abc import Callable, Iterator

from trainmaster.inspect.checks import (
    checkpoints,
    keras,
    metric,
    model_dir,
    parameters,
    roles,
    saving,
    source,
    strategy,
)
from trainmaster.inspect.checks.examined import Examined
from trainmaster.inspect.finding import Finding

CHECKS: tuple[Callable[[Examined], Iterator[Finding]], ...] = (
    source.check,
    keras.check,
    strategy.check,
    saving.check,
    model_dir.check,
    roles.check,
    metric.check,
    parameters.check,
    checkpoints.check,
)


def findings_of(examined: Examined) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(examined)]
