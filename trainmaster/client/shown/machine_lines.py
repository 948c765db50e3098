"""What machines do and did, as text: sparklines while a job runs, means and highest values after it, and a verdict."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from trainmaster.client.terminal import Fact, one_line, plural, size_text
from trainmaster.client.watch.machines import MachinesNow, ReplicaSeries, thinned_means
from trainmaster.orchestrator.core.admission.wasted import waste_verdict
from trainmaster.orchestrator.core.completion.machine_metrics import MachineMetric
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.utilization import ReplicaUse, Use, Utilization

REPLICAS_SHOWN = 8
SPARK_WIDTH = 20
_BLOCKS = "▁▂▃▄▅▆▇█"
_NAMES = {
    MachineMetric.CPU: "CPU",
    MachineMetric.MEMORY: "memory",
    MachineMetric.GPU: "GPU",
    MachineMetric.GPU_MEMORY: "GPU memory",
}
LABEL = "use"


def sparkline(values: Sequence[float], width: int = SPARK_WIDTH) -> str:
    """Fractions as blocks of a height from 0 to 1, at most `width` of them."""
    means = thinned_means(values, width)
    return "".join(_BLOCKS[min(max(int(value * len(_BLOCKS)), 0), len(_BLOCKS) - 1)] for value in means)


def use_texts(series: ReplicaSeries) -> Iterator[tuple[str, Sequence[float], str]]:
    """Of each metric of a replica its name, its values, and the last one: `CPU`, …, `25 %`."""
    for metric, name in _NAMES.items():
        if values := series.get(metric):
            yield name, values, f"{100 * values[-1]:.0f} %"


def now_lines(machines: MachinesNow, most: int = REPLICAS_SHOWN) -> list[str]:
    """A line for each replica: `workerpool0-0  CPU ▁▃█ 93 %  memory ▁▁▁ 4 %`."""
    names = sorted(machines.replicas)
    lines = [
        "  ".join(
            [one_line(name, 24), *(f"{what} {sparkline(values)} {last}" for what, values, last in texts)]
        )
        for name in names[:most]
        if (texts := list(use_texts(machines.replicas[name])))
    ]
    return lines + ([f"and {plural(len(names) - most, 'more replica')}"] if len(names) > most else [])


def now_facts(machines: MachinesNow) -> Iterator[Fact]:
    """What the machines of a running job do, or why that cannot be read; nothing where nothing is reported."""
    lines = [f"not shown: {machines.why}"] if machines.why else now_lines(machines)
    if lines:
        yield LABEL, lines


def utilization_facts(record: RunRecord, *, is_short: bool = False) -> Iterator[Fact]:
    """What the machines of an ended run did, by replica or in short together, and what idle GPUs cost, if that is sure."""
    known = record.utilization
    if not record.ended:
        return
    if known is not None and is_short:
        yield LABEL, [_mean_line(known)]
    elif known is not None:
        lines = [_use_line(use) for use in known.replicas[:REPLICAS_SHOWN]]
        more = len(known.replicas) - len(lines) + (known.left_out or 0)
        yield LABEL, [*lines, *([f"and {plural(more, 'more replica')}"] if more else [])]
    if (verdict := waste_verdict(record)) is not None:
        yield "waste", [verdict]


def _uses(use: ReplicaUse) -> Mapping[str, Use | None]:
    return {"CPU": use.cpu, "memory": use.memory, "GPU": use.gpu, "GPU memory": use.gpu_memory}


def _mean_line(known: Utilization) -> str:
    """For example `2 replicas, mean: CPU 40 %, GPU 11 %`."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for use in known.replicas:
        for name, of in _uses(use).items():
            found[name] += [of.mean] if of else []
    texts = [f"{name} {100 * fmean(means):.0f} %" for name, means in found.items() if means]
    count = len(known.replicas)
    return f"{count} replicas, mean: " * (count > 1) + ", ".join(texts)


def _use_line(use: ReplicaUse) -> str:
    parts = [
        f"{name} {100 * of.mean:.0f} % (up to {100 * of.max:.0f} %)" for name, of in _uses(use).items() if of
    ]
    if use.received_bytes is not None or use.sent_bytes is not None:
        parts.append(f"{size_text(use.received_bytes or 0)} received, {size_text(use.sent_bytes or 0)} sent")
    return f"{one_line(use.replica, 24)}  {', '.join(parts)}"
