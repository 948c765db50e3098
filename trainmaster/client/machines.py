"""The machines of the shipped policy, from which `gpu` chooses where no deployment's policy is at hand, and their memory."""

import re
from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.policy.policy import Machines
from trainmaster.resources import ROOT


def shipped_machines() -> tuple[Machines, ...]:
    """The rows of `machines` in functions/policy.yaml."""
    # Any: the policy's schema, which the shipped file meets, guarantees the types.
    policy: Any = parse_document((ROOT / "functions" / "policy.yaml").read_bytes(), as_json=False).value
    return tuple(decoded(Machines, row) for row in policy["machines"])


_GB = {
    "n1-standard": 3.75, "n1-highmem": 6.5, "n1-highcpu": 0.9, "e2-standard": 4, "e2-highmem": 8, "e2-highcpu": 1,
    "n2-standard": 4, "n2-highmem": 8, "n2-highcpu": 1, "n4-standard": 4, "n4-highmem": 8, "n4-highcpu": 2,
    "c2-standard": 4, "g2-standard": 4, "a2-highgpu": 85, "a2-ultragpu": 170, "a3-highgpu": 234,
}  # fmt: skip
"""GB of memory for each vCPU, or for each GPU, of the number in a machine's name.

Source: https://cloud.google.com/compute/docs/general-purpose-machines, and /accelerator-optimized-machines (2026-11).
"""
_NAME = re.compile(r"((\w+)-\w+)-(\d+)g?")


def memory_of(machine: str) -> float | None:
    """The memory of a machine type in GB; None if it is not known."""
    name = _NAME.fullmatch(machine)
    return _GB[name[1]] * int(name[3]) if name and name[1] in _GB else None


def next_larger(machine: str) -> tuple[str, float] | None:
    """The machine type of the same series with the least memory above this one's, and its GB, if the series has one."""
    own, series = memory_of(machine) or 0, machine.partition("-")[0]
    types = (each for row in shipped_machines() for each in row.types if each.partition("-")[0] == series)
    sizes = [(size, each) for each in types if (size := memory_of(each)) is not None and size > own]
    return min(sizes)[::-1] if sizes else None
