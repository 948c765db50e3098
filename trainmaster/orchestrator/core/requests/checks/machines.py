"""Machines, accelerators and arrangements of TPUs: whether the policy's table has each role's."""

from collections.abc import Iterator, Mapping

from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, listed, nearest
from trainmaster.orchestrator.core.documents.unvalidated import Path, at, text_at, whole_at
from trainmaster.orchestrator.core.policy.policy import Machines, Policy
from trainmaster.orchestrator.core.requests.programs import roles_in

_CHIPS = "leave it out: tpu_topology says how many chips there are"


def machine_faults(policy: Policy, document: object) -> Iterator[Fault]:
    """Every role's machine that the policy does not have, and whatever its machine does not take."""
    for role, pool in roles_in(document):
        here: Path = ("cluster", role)
        machine = text_at(pool, "machine")
        row = None if machine is None else policy.machines_of(machine)
        if machine is not None and row is None:
            every = [name for machines in policy.machines for name in machines.types]
            problem, repair = "the policy does not allow it", nearest(machine, every)
            yield fault_at((*here, "machine"), problem, found=machine, allowed=listed(every), repair=repair)
        elif machine is not None and row is not None:
            yield from _accelerator(here, machine, row, pool)
            yield from _topology(here, machine, row, pool)


def _accelerator(here: Path, machine: str, row: Machines, pool: Mapping[str, object]) -> Iterator[Fault]:
    accelerator, count = text_at(pool, "accelerator", "type"), whole_at(pool, "accelerator", "count")
    taken = row.accelerators or {}
    kinds = listed(f"{name} ({listed(counts)})" for name, counts in taken.items())
    if accelerator is None:
        if row.accelerator_required and at(pool, "accelerator") is None:
            problem = f"missing: {machine} comes with accelerators"
            yield fault_at((*here, "accelerator"), problem, allowed=kinds)
    elif accelerator not in taken:
        yield _not_taken(
            (*here, "accelerator", "type"),
            machine,
            accelerator,
            allowed=kinds,
            repair=nearest(accelerator, list(taken)) or (_CHIPS if row.tpu_topologies else ""),
        )
    elif count is not None and count not in taken[accelerator]:
        problem = f"{machine} does not take this many {accelerator}"
        yield fault_at(
            (*here, "accelerator", "count"), problem, found=count, allowed=listed(taken[accelerator])
        )


def _topology(here: Path, machine: str, row: Machines, pool: Mapping[str, object]) -> Iterator[Fault]:
    path, allowed = (*here, "tpu_topology"), listed(row.tpu_topologies)
    topology = text_at(pool, "tpu_topology")
    if topology is None:
        if row.tpu_topologies and at(pool, "tpu_topology") is None:
            problem = f"missing: {machine} comes with TPUs, and this says how many"
            yield fault_at(path, problem, allowed=allowed)
    elif topology not in row.tpu_topologies:
        yield _not_taken(path, machine, topology, allowed=allowed, repair="" if allowed else "leave it out")


def _not_taken(path: Path, machine: str, found: str, *, allowed: str, repair: str) -> Fault:
    problem = f"{machine} does not take it"
    return fault_at(path, problem, found=found, allowed=allowed or "none", repair=repair)
