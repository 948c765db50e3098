"""The scale tier and the machines of every role, as our own cluster."""

from typing import TypeGuard

from trainmaster.orchestrator.core.documents.faults import listed, nearest, plain
from trainmaster.orchestrator.core.requests.legacy.reading import MASTER, OTHERS, ROLES, Job, Role
from trainmaster.orchestrator.core.requests.legacy.tables import (
    ACCELERATORS,
    CUSTOM,
    MACHINES,
    NO_ACCELERATOR,
    RETIRED_ACCELERATORS,
    TIERS,
    Machine,
    Tier,
)
from trainmaster.orchestrator.core.requests.translation.fields import Fields, copy_keys
from trainmaster.orchestrator.core.requests.translation.own_document import OwnDocument, Path

_UNVERIFIED = "Google no longer documents this machine, so this mapping is unverified"
_MACHINE_NAMES = "a Compute Engine machine type or a legacy machine name"


def write_cluster(job: Job) -> None:
    """What runs where."""
    tier = _tier(job.spec)
    if tier is None:
        _write_custom(job)
    else:
        _write_tier(job, tier)


def _tier(spec: Fields) -> Tier | None:
    """The tier's own cluster; None where the file describes one."""
    given = spec.get("scaleTier")
    sizes = [key for role in ROLES for key in role.size_keys if spec.has(key)]
    if given in (None, "SCALE_TIER_UNSPECIFIED"):
        return _default_tier(spec, sizes)
    if given == CUSTOM:
        return None
    if not isinstance(given, str) or given not in TIERS:
        spec.refuse_choice("scaleTier", (*TIERS, CUSTOM))
        return None if sizes else TIERS["BASIC"]
    tier = TIERS[given]
    if tier.chief.retired:
        spec.refuse("scaleTier", tier.chief.retired, allowed=_tiers_of_today(), repair=_instead(tier.chief))
    else:
        spec.warn("scaleTier", f"{_UNVERIFIED}: {_said(tier)}", repair=_as_custom(tier))
    return tier


def _default_tier(spec: Fields, sizes: list[str]) -> Tier | None:
    if sizes:
        problem = f"missing: {listed(sizes)} need the tier CUSTOM"
        spec.refuse("scaleTier", problem, found="", repair="write scaleTier: CUSTOM")
        return None
    basic = TIERS["BASIC"]
    problem = f"missing, so it is BASIC: {_UNVERIFIED}: {_said(basic)}"
    spec.warn("scaleTier", problem, found="", repair=_as_custom(basic))
    return basic


def _write_tier(job: Job, tier: Tier) -> None:
    source = job.spec.at("scaleTier")
    # An unknown tier is judged as BASIC, and may be any text.
    name = plain(str(job.spec.get("scaleTier") or "BASIC"))
    for role in ROLES:
        _refuse_sizes(job, role, name)
    _write_machine(job.cluster, MASTER, tier.chief, source)
    for role in OTHERS:
        if role.ours in tier.pools:
            count, machine = tier.pools[role.ours]
            _write_machine(job.cluster, role, machine, source).put("count", count, source)
        elif job.spec.has(role.config_key):
            problem = f"the tier {name} has no {role.word}"
            repair = f"remove it, or write scaleTier: {CUSTOM}, {role.type_key} and {role.count_key}"
            job.spec.refuse(role.config_key, problem, found="", repair=repair)
    for role in ROLES:
        _write_disk(job, role)


def _refuse_sizes(job: Job, role: Role, tier: str) -> None:
    problem = f"the tier {tier} sets its own machines"
    for key in filter(job.spec.has, role.size_keys):
        job.spec.refuse(key, problem, repair=f"write scaleTier: {CUSTOM}, or remove {key}")
    if job.config(role).has("acceleratorConfig"):
        repair = f"write scaleTier: {CUSTOM} and {role.type_key}, or remove acceleratorConfig"
        job.config(role).refuse("acceleratorConfig", problem, found="", repair=repair)


def _write_machine(cluster: OwnDocument, role: Role, machine: Machine, source: Path) -> OwnDocument:
    own = cluster.inner(role.ours, source)
    own.put("machine", machine.machine, source)
    own.put("tpu_topology", machine.tpu_topology, source)
    if machine.accelerator:
        own.put("accelerator", {"type": machine.accelerator, "count": machine.count}, source)
    return own


def _write_custom(job: Job) -> None:
    if not job.spec.has(MASTER.type_key):
        repair = "write for example masterType: n1-standard-4"
        problem = "missing: the tier CUSTOM needs it"
        job.spec.refuse(MASTER.type_key, problem, allowed=_MACHINE_NAMES, repair=repair)
    _write_role(job, MASTER)
    for role in OTHERS:
        if _has_replicas(job.spec, role):
            _write_role(job, role)
            copy_keys(job.spec, job.replicas(role), {role.count_key: "count"}, Fields.number)
    _refuse_mixed_machines(job.spec)


def _has_replicas(spec: Fields, role: Role) -> bool:
    count, has_type = spec.number(role.count_key), spec.has(role.type_key)
    if count is None and not has_type:
        if spec.has(role.config_key):
            repair = f"write {role.type_key} and {role.count_key}, or remove it"
            spec.refuse(role.config_key, f"it has no {role.word}", found="", repair=repair)
        return False
    if count is None:
        problem, allowed = f"missing: {role.type_key} needs it", f"the number of {role.word}"
        repair = f"write {role.count_key}: 1, or take {role.type_key} out"
        spec.refuse(role.count_key, problem, allowed=allowed, repair=repair)
    elif count == 0 and not isinstance(count, bool):
        return False
    elif not has_type:
        problem = f"missing: {role.count_key} needs it"
        repair = f"write for example {role.type_key}: n1-standard-4, or take {role.count_key} out"
        spec.refuse(role.type_key, problem, allowed=_MACHINE_NAMES, repair=repair)
    return True


def _write_role(job: Job, role: Role) -> None:
    spec, name = job.spec, job.spec.get(role.type_key)
    row = MACHINES.get(name) if isinstance(name, str) else None
    if row is not None:
        _write_legacy_machine(job, role, row)
    else:
        own = job.cluster.inner(role.ours, spec.at(role.type_key))
        copy_keys(spec, own, {role.type_key: "machine"})
        _write_accelerator(job.config(role), own)
        if isinstance(name, str) and "_" in name:
            repair = nearest(name, list(MACHINES)) or "write a Compute Engine machine type"
            spec.refuse(role.type_key, "no machine type has this name", among=MACHINES, repair=repair)
    _write_disk(job, role)


def _write_legacy_machine(job: Job, role: Role, row: Machine) -> None:
    spec, name = job.spec, job.spec.get(role.type_key)
    _write_machine(job.cluster, role, row, spec.at(role.type_key))
    has_accelerators = job.config(role).has("acceleratorConfig")
    if row.retired:
        # What to write _instead of a machine that is gone says its accelerators too.
        spec.refuse(role.type_key, row.retired, repair=_instead(row, role))
        return
    note = f"; {row.note}" if row.note else ""
    repair = f"write {role.type_key}: {row.machine}{_and_gpus(row, role)} to be certain"
    spec.warn(role.type_key, f"{_UNVERIFIED}: it becomes {_machine_said(row)}{note}", repair=repair)
    if has_accelerators:
        problem = f"{name} is a legacy machine, which does not support acceleratorConfig"
        repair = f"write {role.type_key}: {row.machine}, or remove acceleratorConfig"
        job.config(role).refuse("acceleratorConfig", problem, found="", repair=repair)


def _refuse_mixed_machines(spec: Fields) -> None:
    master = spec.get(MASTER.type_key)
    for role in OTHERS:
        name = spec.get(role.type_key)
        # A machine that is gone has a fault already, and today's is Compute Engine's.
        if not (_is_offered(master) and _is_offered(name)) or (name in MACHINES) == (master in MACHINES):
            continue
        legacy, mended = (name, role) if name in MACHINES else (master, MASTER)
        machine = MACHINES[legacy]
        problem = f"masterType is {master!r}: use only legacy machines or only Compute Engine machines"
        repair = f"write {mended.type_key}: {machine.machine}{_and_gpus(machine, mended)}"
        spec.refuse(role.type_key, problem, repair=repair)


def _is_offered(name: object) -> TypeGuard[str]:
    return isinstance(name, str) and not (name in MACHINES and MACHINES[name].retired)


def _write_accelerator(config: Fields, replicas: OwnDocument) -> None:
    written = config.fields("acceleratorConfig")
    if not config.has("acceleratorConfig"):
        return
    kind, count = written.get("type"), written.number("count")
    if isinstance(kind, str) and kind in RETIRED_ACCELERATORS:
        repair = RETIRED_ACCELERATORS[kind]
        written.refuse("type", "no longer offered", among=ACCELERATORS, repair=repair)
    elif kind != NO_ACCELERATOR:
        own = replicas.inner("accelerator", written.path)
        own.put("type", kind, written.at("type"))
        own.put("count", count, written.at("count"))


def _write_disk(job: Job, role: Role) -> None:
    config = job.config(role)
    disk = config.fields("diskConfig")
    if not config.has("diskConfig") or not job.has(role):
        return
    own = job.replicas(role).inner("disk", disk.path)
    copy_keys(disk, own, {"bootDiskType": "type"})
    copy_keys(disk, own, {"bootDiskSizeGb": "size_gb"}, Fields.number)


def _tiers_of_today() -> str:
    return listed((*(name for name, tier in TIERS.items() if not tier.chief.retired), CUSTOM))


def _machine_said(machine: Machine) -> str:
    with_accelerators = f" with {machine.count} {machine.accelerator}" if machine.accelerator else ""
    return machine.machine + with_accelerators


def _said(tier: Tier) -> str:
    pools = [(role, *tier.pools[role.ours]) for role in OTHERS if role.ours in tier.pools]
    others = [f"{count} {role.word} {_machine_said(machine)}" for role, count, machine in pools]
    return ", ".join([f"master {_machine_said(tier.chief)}", *others]) + (
        f"; {tier.notes}" if tier.notes else ""
    )


def _as_custom(tier: Tier) -> str:
    lines = [f"masterType: {tier.chief.machine}"]
    for role in OTHERS:
        if role.ours in tier.pools:
            count, machine = tier.pools[role.ours]
            lines += [f"{role.type_key}: {machine.machine}", f"{role.count_key}: {count}"]
    return f"write scaleTier: {CUSTOM}, {', '.join(lines)} to be certain"


def _and_gpus(machine: Machine, role: Role) -> str:
    if not machine.accelerator:
        return ""
    gpus = f"{{type: {machine.accelerator}, count: {machine.count}}}"
    return f" and {role.config_key}: {{acceleratorConfig: {gpus}}}"


def _instead(machine: Machine, role: Role = MASTER) -> str:
    """What to write for a machine that is gone."""
    if machine.tpu_topology:
        own = f"{{machine: {machine.machine}, tpu_topology: {machine.tpu_topology}}}"
        return f"the nearest is a TPU v5e host, which trains alone: write a request of our own with cluster: {{chief: {own}}}"
    custom = f"scaleTier: {CUSTOM}, " if role is MASTER else ""
    return f"write {custom}{role.type_key}: {machine.machine}{_and_gpus(machine, role)}"
