"""Machines, accelerators and arrangements of TPUs: whether the policy's table has each role's."""

from collections.abc import Iterator, Mapping

from trainmaster.orchestrator.core.documents.faults import Fault, json_path, listed, nearest, shown
from trainmaster.orchestrator.core.documents.unvalidated import Path, at, text_at, whole_at
from trainmaster.orchestrator.core.policy.policy import Machines, Policy
from trainmaster.orchestrator.core.requests.programs import roles_in


def machine_faults(policy: Policy, document: object) -> Iterator[Fault]:
    """Every role's machine that the policy does not have, and whatever its machine does not take."""
    for role, pool in roles_in(document):
        here: Path = ("cluster", role)
        machine = text_at(pool, "machine")
        if machine is None:
            continue
        row = policy.machines_of(machine)
        if row is None:
            every = [name for machines in policy.machines for name in machines.types]
            yield Fault(
                path=json_path((*here, "machine")),
                problem="the policy does not allow it",
                found=shown(machine),
                allowed=listed(every),
                repair=nearest(machine, every),
            )
            continue
        yield from _accelerator(here, machine, row, pool)
        yield from _topology(here, machine, row, pool)


def _accelerator(here: Path, machine: str, row: Machines, pool: Mapping[str, object]) -> Iterator[Fault]:
    accelerator = text_at(pool, "accelerator", "type")
    count = whole_at(pool, "accelerator", "count")
    taken = row.accelerators or {}
    kinds = listed(f"{name} ({listed(counts)})" for name, counts in taken.items())
    if accelerator is None:
        if row.accelerator_required and at(pool, "accelerator") is None:
            yield Fault(
                path=json_path((*here, "accelerator")),
                problem=f"missing: {machine} comes with accelerators",
                allowed=kinds,
            )
        return
    if accelerator not in taken:
        repair = "leave it out: tpu_topology says how many chips there are" if row.tpu_topologies else ""
        yield Fault(
            path=json_path((*here, "accelerator", "type")),
            problem=f"{machine} does not take it",
            found=shown(accelerator),
            allowed=kinds or "none",
            repair=nearest(accelerator, list(taken)) or repair,
        )
    elif count is not None and count not in taken[accelerator]:
        yield Fault(
            path=json_path((*here, "accelerator", "count")),
            problem=f"{machine} does not take this many {accelerator}",
            found=shown(count),
            allowed=listed(taken[accelerator]),
        )


def _topology(here: Path, machine: str, row: Machines, pool: Mapping[str, object]) -> Iterator[Fault]:
    path = json_path((*here, "tpu_topology"))
    topology = text_at(pool, "tpu_topology")
    if topology is None:
        if row.tpu_topologies and at(pool, "tpu_topology") is None:
            problem = f"missing: {machine} comes with TPUs, and this says how many"
            yield Fault(path=path, problem=problem, allowed=listed(row.tpu_topologies))
        return
    if topology not in row.tpu_topologies:
        yield Fault(
            path=path,
            problem=f"{machine} does not take it",
            found=shown(topology),
            allowed=listed(row.tpu_topologies) or "none",
            repair="" if row.tpu_topologies else "leave it out",
        )
