"""`gpu: L4:1`: the machine that it chooses, and what it contradicts."""

from typing import Any

import pytest

from tests.core.admission_cases import CHIEF, candidates, document, faults, policy, sound
from tests.core.shipped import REQUEST_RULES
from tests.narrowing import instance_of
from trainmaster.client.machines import shipped_machines
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.requests.gpus import (
    NAMES,
    GpuMachine,
    accelerator_type,
    choose_machine,
    known_gpus,
)
from trainmaster.orchestrator.core.requests.spec import Accelerator

MACHINES = REQUEST_RULES.machines
L4 = {"machine": "g2-standard-4", "accelerator": {"type": "NVIDIA_L4", "count": 1}}


def chief(**keys: Any) -> dict[str, Any]:
    return document(cluster={"chief": keys})


@pytest.mark.parametrize(
    ("gpu", "machine", "kind", "count"),
    [
        ("L4", "g2-standard-4", "NVIDIA_L4", 1),
        ("L4:8", "g2-standard-96", "NVIDIA_L4", 8),
        ("T4:2", "n1-standard-4", "NVIDIA_TESLA_T4", 2),
        ("nvidia-tesla-t4", "n1-standard-4", "NVIDIA_TESLA_T4", 1),
        ("A100:16", "a2-megagpu-16g", "NVIDIA_TESLA_A100", 16),
        ("a100_80gb:2", "a2-ultragpu-2g", "NVIDIA_A100_80GB", 2),
        ("H100:8", "a3-highgpu-8g", "NVIDIA_H100_80GB", 8),
        ("NVIDIA_H100_MEGA_80GB:8", "a3-megagpu-8g", "NVIDIA_H100_MEGA_80GB", 8),
    ],
)
def test_a_gpu_chooses_the_first_machine_with_that_many(
    gpu: str, machine: str, kind: str, count: int
) -> None:
    expected = GpuMachine(machine=machine, accelerator=Accelerator(type=kind, count=count))
    assert choose_machine(gpu, MACHINES) == expected
    assert sound(chief(gpu=gpu)).document["cluster"]["chief"] == {
        "machine": machine,
        "accelerator": {"type": kind, "count": count},
    }


def test_every_gpu_of_the_shipped_policy_has_a_short_name_and_every_count_a_machine() -> None:
    known = known_gpus(MACHINES)
    assert known.keys() == NAMES.keys()
    for name, counts in known.items():
        for count in counts:
            chosen = instance_of(GpuMachine, choose_machine(f"{name}:{count}", MACHINES))
            row = next(row for row in MACHINES if chosen.machine in row.types)
            assert count in (row.accelerators or {})[NAMES[name]]


def test_in_the_shipped_policy_the_first_type_of_a_series_is_the_smallest_that_fits() -> None:
    for name, counts in known_gpus(MACHINES).items():
        for count in counts:
            rows = [row for row in MACHINES if count in (row.accelerators or {}).get(NAMES[name], ())]
            types = [each for row in rows for each in row.types]
            series = types[0].rpartition("-")[0]
            assert types[0] == min((each for each in types if each.startswith(f"{series}-")), key=size)


def size(machine: str) -> int:
    return int(machine.rpartition("-")[2].rstrip("g"))


def test_without_a_policy_the_shipped_machines_are_chosen_from() -> None:
    assert shipped_machines() == MACHINES


def test_a_gpu_may_stand_beside_a_machine_and_an_accelerator_that_have_it() -> None:
    larger = {**L4, "machine": "g2-standard-8"}
    for keys in ({"machine": "g2-standard-8"}, larger):
        assert sound(chief(gpu="L4", **keys)).document["cluster"]["chief"] == larger


def test_each_role_and_each_fallback_may_ask_for_gpus() -> None:
    cluster = {"chief": CHIEF, "workers": {"count": 2, "gpu": "L4"}}
    fallbacks = [{"cluster": {"workers": {"gpu": "T4:2"}}}, {"region": "europe-west4"}]
    found = sound(document(cluster=cluster, fallbacks=fallbacks))
    assert found.document["cluster"]["workers"] == {"count": 2, **L4}
    workers = [each.spec.cluster.workers for each in candidates(**found.document)]
    machines = [(pool.machine, pool.accelerator) for pool in workers if pool is not None]
    l4, t4 = (Accelerator(type=name, count=count) for name, count in (("NVIDIA_L4", 1), (NAMES["T4"], 2)))
    assert machines == [("g2-standard-4", l4), ("n1-standard-4", t4), ("g2-standard-4", l4)]


@pytest.mark.parametrize(
    ("keys", "path", "said"),
    [
        ({"gpu": "L5"}, "gpu", ("no machine type has this GPU", "found 'L5'", "L4 (1, 2, 4, 8)")),
        ({"gpu": "T40"}, "gpu", ("found 'T40'", "did you mean 'T4'?")),
        ({"gpu": "L4:3"}, "gpu", ("no machine type has 3 NVIDIA_L4", "allowed: 1, 2, 4, 8")),
        ({"gpu": "L4:"}, "gpu", ("not in the expected format", "for example L4:1")),
        ({"gpu": "L4:0"}, "gpu", ("not in the expected format",)),
        ({"gpu": 4}, "gpu", ("expected a string", "found 4")),
        ({"gpu": {"L4": 1}}, "gpu", ("expected a string",)),
        ({"gpu": "TPU_V2:8"}, "gpu", ("for TPUs",)),
        (
            {"gpu": "L4", "machine": "n1-standard-4"},
            "machine",
            ("does not have 1 NVIDIA_L4", "allowed: g2-standard-4", "remove machine"),
        ),
        (
            {"gpu": "L4", "accelerator": {"type": "NVIDIA_L4", "count": 2}},
            "accelerator",
            ("it contradicts gpu: L4", "allowed: type NVIDIA_L4 and count 1", "remove accelerator or gpu"),
        ),
        ({"disk": {}}, "machine", ("missing", "or gpu, for example L4:1")),
    ],
)
def test_an_impossible_gpu_is_a_fault(keys: dict[str, Any], path: str, said: tuple[str, ...]) -> None:
    found = faults(chief(**keys))
    assert list(found) == [f"$.cluster.chief.{path}"]
    for text in said:
        assert text in found[f"$.cluster.chief.{path}"]


def test_every_faulty_gpu_is_reported_at_its_place() -> None:
    fallbacks = [{"cluster": {"chief": {"gpu": "A100:3"}}}, {"cluster": {"chief": {"gpu": "H1"}}}]
    cluster = {"chief": {"gpu": "T4:3"}, "workers": {"count": 1, "gpu": "x"}}
    assert set(faults(document(cluster=cluster, fallbacks=fallbacks))) == {
        "$.cluster.chief.gpu",
        "$.cluster.workers.gpu",
        "$.fallbacks[0].cluster.chief.gpu",
        "$.fallbacks[1].cluster.chief.gpu",
    }


def test_a_contradiction_in_a_fallback_is_one_fault() -> None:
    fallback = {"cluster": {"chief": {"gpu": "H100", "machine": "a2-highgpu-1g"}}}
    assert list(faults({**chief(gpu="L4"), "fallbacks": [fallback]})) == [
        "$.fallbacks[0].cluster.chief.machine"
    ]


def test_an_unknown_gpu_and_an_unknown_machine_are_two_faults() -> None:
    keys = {"gpu": "L5", "machine": "n0-standard-4"}
    found = faults({**chief(**keys), "fallbacks": [{"cluster": {"chief": keys}}]})
    assert {"$.cluster.chief.gpu", "$.cluster.chief.machine"} <= found.keys()


def test_a_fault_of_the_chosen_machine_is_reported_at_the_gpu() -> None:
    narrow = policy(machines=[{"types": ["n1-standard-4"], "accelerators": {NAMES["T4"]: [1]}}])
    wider = [*narrow.machines, *MACHINES]
    assert isinstance(choose_machine("L4", wider), GpuMachine)
    assert isinstance(choose_machine("L4", narrow.machines), Fault)
    flexible = {"scheduling": {"flex_start": True}}
    assert list(faults({**chief(gpu="T4"), **flexible})) == ["$.cluster.chief.gpu"]


@pytest.mark.parametrize("short", ["T4", "t4", "nvidia_tesla_t4"])
def test_an_accelerator_by_its_short_name_is_corrected(short: str) -> None:
    assert accelerator_type(short, MACHINES) == NAMES["T4"]
    if short.isupper():
        written = chief(machine="n1-standard-4", accelerator={"type": short, "count": 1})
        found = faults(written)["$.cluster.chief.accelerator.type"]
        assert "did you mean 'NVIDIA_TESLA_T4'?" in found
