"""What a user is told to write for a machine or a tier."""

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests.legacy.reading import MASTER, OTHERS, Role
from trainmaster.orchestrator.core.requests.legacy.tables import CUSTOM, TIERS, Machine, Tier


def tiers_of_today() -> str:
    return listed((*(name for name, tier in TIERS.items() if not tier.chief.retired), CUSTOM))


def machine_said(machine: Machine) -> str:
    with_accelerators = f" with {machine.count} {machine.accelerator}" if machine.accelerator else ""
    return machine.machine + with_accelerators


def said(tier: Tier) -> str:
    pools = [(role, *tier.pools[role.ours]) for role in OTHERS if role.ours in tier.pools]
    others = [f"{count} {role.word} {machine_said(machine)}" for role, count, machine in pools]
    return ", ".join([f"master {machine_said(tier.chief)}", *others]) + (
        f"; {tier.notes}" if tier.notes else ""
    )


def write_custom(tier: Tier) -> str:
    lines = [f"masterType: {tier.chief.machine}"]
    for role in OTHERS:
        if role.ours in tier.pools:
            count, machine = tier.pools[role.ours]
            lines += [f"{role.type_key}: {machine.machine}", f"{role.count_key}: {count}"]
    return f"write scaleTier: {CUSTOM}, {', '.join(lines)} to be sure"


def and_gpus(machine: Machine, role: Role) -> str:
    if not machine.accelerator:
        return ""
    gpus = f"{{type: {machine.accelerator}, count: {machine.count}}}"
    return f" and {role.config_key}: {{acceleratorConfig: {gpus}}}"


def instead(machine: Machine, role: Role = MASTER) -> str:
    """What to write for a machine that is gone."""
    if machine.tpu_topology:
        own = f"{{machine: {machine.machine}, tpu_topology: {machine.tpu_topology}}}"
        return f"the nearest is a TPU v5e host, which trains alone: write a request of our own with cluster: {{chief: {own}}}"
    custom = f"scaleTier: {CUSTOM}, " if role is MASTER else ""
    return f"write {custom}{role.type_key}: {machine.machine}{and_gpus(machine, role)}"
