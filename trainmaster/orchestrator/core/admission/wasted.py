"""What an ended run's GPUs cost while they idled, where that is sure: every GPU reported, and every price is known."""

from collections.abc import Iterator
from decimal import Decimal

from trainmaster.orchestrator.core.admission.candidates import current_candidate
from trainmaster.orchestrator.core.runs.record import RunRecord

LOW_USE = 0.3
"""From this mean use of the GPUs on, there is no verdict: input, checkpoints and evaluation need some of the time."""
RAN_S_MIN = 600
"""A shorter job mostly started and ended."""
ROOM = 0.5
"""The use that fewer GPUs should have at most, if the work of all is given to them."""
FULL_MEMORY = 0.9
"""Above this share of any GPU's memory, fewer GPUs may not hold the model, and none are proposed."""
_TPU = "TPU"


def waste_verdict(record: RunRecord) -> str | None:
    """`8 GPUs, 11 % used: 312 of 351 USD wasted; try 2`; None if the GPUs of the ended run were used, or that is not sure."""
    cost = record.completion.cost if record.completion else None
    if record.utilization is None or record.request is None or cost is None or cost.unknown:
        return None
    counts = dict(_gpus_of(record))
    uses = {one.replica: one for one in record.utilization.replicas if one.gpu is not None}
    if not counts or counts.keys() - uses.keys() or cost.ran_s < RAN_S_MIN:
        return None
    gpus = sum(counts.values())
    used = sum(use.mean * counts[name] for name in counts if (use := uses[name].gpu)) / gpus
    amount = sum(cost.roles.values(), Decimal(0))
    if used >= LOW_USE or not amount:
        return None
    is_full = any((memory := uses[name].gpu_memory) and memory.max > FULL_MEMORY for name in counts)
    enough = next(
        n for n in (2**k for k in range(gpus.bit_length() + 1)) if n >= gpus or used * gpus / n <= ROOM
    )
    digits = 0 if amount >= 10 else 2  # noqa: PLR2004  cents of small amounts
    what = f"{gpus} GPU{'' if gpus == 1 else 's'}, {100 * used:.0f} % used"
    wasted = f"{amount * (1 - Decimal(str(used))):.{digits}f} of {amount:.{digits}f} {cost.currency} wasted"
    return f"{what}: {wasted}{f'; try {enough}' if enough < gpus and not is_full else ''}"


def _gpus_of(record: RunRecord) -> Iterator[tuple[str, int]]:
    """How many GPUs each replica has that has any, as Vertex AI names the replicas."""
    for place, pool in enumerate(current_candidate(record).spec.cluster.pools):
        if pool is not None and pool.accelerator is not None and not pool.accelerator.type.startswith(_TPU):
            for number in range(pool.replicas):
                yield f"workerpool{place}-{number}", pool.accelerator.count
