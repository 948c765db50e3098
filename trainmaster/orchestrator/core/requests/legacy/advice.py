"""What a user is told to write for a machine or a tier."""

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests.legacy.reading import MASTER, OTHERS, Role
from trainmaster.orchestrator.core.requests.legacy.tables import CUSTOM, TIERS, Machine, Tier


def tiers_of_today() -> str:
    return listed((*(name for name, tier in TIERS.items() if not tier.retired), CUSTOM))


def machine_said(machine: Machine) -> str:
    if machine.gpus is None:
        return machine.machine
    return f"{machine.machine} with {machine.gpus.count} {machine.gpus.type}"


def said(tier: Tier) -> str:
    roles = [f"master {machine_said(tier.chief)}"]
    for role, pool in zip(OTHERS, (tier.workers, tier.parameter_servers, tier.evaluators), strict=True):
        if pool:
            roles.append(f"{pool.count} {role.word} {machine_said(pool.machine)}")
    return ", ".join(roles) + (f"; {tier.notes}" if tier.notes else "")


def write_custom(tier: Tier) -> str:
    lines = [f"masterType: {tier.chief.machine}"]
    for role, pool in zip(OTHERS, (tier.workers, tier.parameter_servers, tier.evaluators), strict=True):
        if pool:
            lines += [f"{role.type_key}: {pool.machine.machine}", f"{role.count_key}: {pool.count}"]
    return f"write scaleTier: {CUSTOM}, {', '.join(lines)} to be sure"


def and_gpus(machine: Machine, role: Role) -> str:
    if machine.gpus is None:
        return ""
    gpus = f"{{type: {machine.gpus.type}, count: {machine.gpus.count}}}"
    return f" and {role.config_key}: {{acceleratorConfig: {gpus}}}"


def instead(machine: Machine, role: Role = MASTER) -> str:
    """What to write for a machine that is gone."""
    if machine.tpu_topology:
        own = f"{{machine: {machine.machine}, tpu_topology: {machine.tpu_topology}}}"
        return f"the nearest is a TPU v5e host, which trains alone: write a request of our own with cluster: {{chief: {own}}}"
    custom = f"scaleTier: {CUSTOM}, " if role is MASTER else ""
    return f"write {custom}{role.type_key}: {machine.machine}{and_gpus(machine, role)}"
