"""The verdict on idle GPUs, which is given only where it is sure."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.core.admission.test_actual_cost import record
from trainmaster.orchestrator.core.admission.wasted import LOW_USE, RAN_S_MIN, waste_verdict
from trainmaster.orchestrator.core.runs.end import Completion, Cost
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.utilization import ReplicaUse, Use, Utilization

COST = Cost(currency="USD", ran_s=36_000.0, total=Decimal(351), roles={"chief": Decimal(351)})


def ended(gpus: int = 8, *, used: float | None = 0.11, memory: float = 0.5, **cost: Any) -> RunRecord:
    chief = {"machine": "n1-standard-8", "accelerator": {"type": "NVIDIA_TESLA_V100", "count": gpus}}
    gpu = None if used is None else Use(mean=used, max=1.0)
    use = ReplicaUse(replica="workerpool0-0", gpu=gpu, gpu_memory=Use(mean=memory, max=memory))
    completion = Completion(cost=replace(COST, **cost))
    known = record(cluster={"chief": chief if gpus else {"machine": "n1-standard-8"}})
    return replace(known, utilization=Utilization(replicas=(use,)), completion=completion)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (ended(), "8 GPUs, 11 % used: 312 of 351 USD wasted; try 2"),
        (ended(used=0.06), "8 GPUs, 6 % used: 330 of 351 USD wasted; try 1"),
        (ended(memory=0.95), "8 GPUs, 11 % used: 312 of 351 USD wasted"),
        (ended(gpus=1), "1 GPU, 11 % used: 312 of 351 USD wasted"),
        (ended(roles={"chief": Decimal("2.0")}), "8 GPUs, 11 % used: 1.78 of 2.00 USD wasted; try 2"),
    ],
)
def test_idle_gpus_have_a_price_and_a_smaller_number_to_try(given: RunRecord, text: str) -> None:
    assert waste_verdict(given) == text


@pytest.mark.parametrize(
    "unsure",
    [
        ended(used=LOW_USE),
        ended(used=None),
        ended(gpus=0),
        ended(ran_s=RAN_S_MIN - 1.0),
        ended(unknown=("machine n1-standard-8",)),
        ended(roles={}),
        replace(ended(), utilization=None),
        replace(ended(), completion=None),
        replace(ended(), utilization=Utilization(replicas=(ReplicaUse(replica="workerpool1-0", gpu=None),))),
    ],
)
def test_without_all_numbers_or_with_busy_gpus_there_is_no_verdict(unsure: RunRecord) -> None:
    assert waste_verdict(unsure) is None
