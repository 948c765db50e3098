"""The scale tier and the machines of every role, as our own cluster.

The rows of machines and tiers are general knowledge: no reference page says them any more. A request that
uses one is accepted with a warning.

Sources: the Job message of gcloud's own client (googlecloudsdk/generated_clients/apis/ml/v1/ml_v1_messages.py,
gcloud 528), https://cloud.google.com/vertex-ai/docs/start/migrating-to-vertex-ai and
https://cloud.google.com/vertex-ai/docs/training/configure-compute (read 2026-11).
"""

from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass

from trainmaster.orchestrator.core.documents.faults import listed, nearest, plain
from trainmaster.orchestrator.core.requests.ai_platform.job import (
    MASTER,
    OTHERS,
    ROLES,
    LegacyJob,
    LegacyRole,
)
from trainmaster.orchestrator.core.requests.fields import Fields, copy_keys
from trainmaster.orchestrator.core.requests.own_document import OwnDocument
from trainmaster.orchestrator.core.requests.vertex.pools import NO_ACCELERATOR, write_disk


@dataclass(frozen=True)
class LegacyMachine:
    """A machine of Vertex AI with `count` accelerators. `note` says where it is not quite the old one.

    `retired` says what of the old machine is gone; the row is then today's nearest choice, for the user to
    write and not to be taken unasked. `instead` says how, if a legacy file cannot name it.
    """

    machine: str
    accelerator: str = ""
    count: int = 0
    _: KW_ONLY
    tpu_topology: str | None = None
    note: str = ""
    retired: str = ""
    instead: str = ""


Tier = Mapping[LegacyRole, tuple[int, LegacyMachine]]
"""The cluster that a scale tier stands for: the count and machine of each role."""

_NO_K80 = "NVIDIA K80 GPUs are no longer offered"
_NO_HIGHCPU_8 = "Vertex AI trains on no n1-highcpu-8; n1-standard-8 has as many CPUs and more memory"
_T4, _P100, _V100 = "NVIDIA_TESLA_T4", "NVIDIA_TESLA_P100", "NVIDIA_TESLA_V100"
_STANDARD_4, _HIGHMEM_8 = LegacyMachine("n1-standard-4"), LegacyMachine("n1-highmem-8")
_HIGHCPU_8, _HIGHCPU_16 = LegacyMachine("n1-standard-8", note=_NO_HIGHCPU_8), LegacyMachine("n1-highcpu-16")
_BASIC_GPU = LegacyMachine("n1-standard-8", _T4, 1, retired=_NO_K80)
# A v2-8 node had four chips, as this host of TPU v5e has.
_BASIC_TPU = LegacyMachine(
    "ct5lp-hightpu-4t",
    tpu_topology="2x2",
    retired="TPU v2 nodes beside a machine are no longer offered",
    instead="the nearest is a TPU v5e host, which trains alone: write a request of our own with "
    "cluster: {chief: {machine: ct5lp-hightpu-4t, tpu_topology: 2x2}}",
)
_WORKERS, _SERVERS, _ = OTHERS

BASIC, CUSTOM = "BASIC", "CUSTOM"
TIERS: Mapping[str, Tier] = {
    BASIC: {MASTER: (1, _STANDARD_4)},
    "STANDARD_1": {MASTER: (1, _HIGHCPU_8), _WORKERS: (4, _HIGHCPU_8), _SERVERS: (3, _STANDARD_4)},
    "PREMIUM_1": {MASTER: (1, _HIGHCPU_16), _WORKERS: (19, _HIGHCPU_16), _SERVERS: (11, _HIGHMEM_8)},
    "BASIC_GPU": {MASTER: (1, _BASIC_GPU)},
    "BASIC_TPU": {MASTER: (1, _BASIC_TPU)},
}
MACHINES: Mapping[str, LegacyMachine] = {
    "standard": _STANDARD_4,
    "large_model": _HIGHMEM_8,
    "complex_model_s": _HIGHCPU_8,
    "complex_model_m": _HIGHCPU_16,
    "complex_model_l": LegacyMachine("n1-highcpu-32"),
    "standard_gpu": _BASIC_GPU,
    "complex_model_m_gpu": LegacyMachine("n1-standard-16", _T4, 4, retired=_NO_K80),
    "complex_model_l_gpu": LegacyMachine("n1-standard-32", _T4, 4, retired=_NO_K80),
    "standard_p100": LegacyMachine("n1-standard-8", _P100, 1),
    "complex_model_m_p100": LegacyMachine("n1-standard-16", _P100, 4),
    "standard_v100": LegacyMachine("n1-standard-8", _V100, 1),
    "large_model_v100": LegacyMachine(
        "n1-highmem-8", _V100, 1, note="an n1-highmem-16 takes no single V100; this has half its CPUs"
    ),
    "complex_model_m_v100": LegacyMachine("n1-standard-16", _V100, 4),
    "complex_model_l_v100": LegacyMachine("n1-standard-32", _V100, 8),
    "cloud_tpu": _BASIC_TPU,
}
"""Legacy machine names. Names of Compute Engine (n1-highcpu-16, …) are the same on Vertex AI."""

ACCELERATORS = ("NVIDIA_TESLA_P4", _T4, _P100, _V100, "NVIDIA_TESLA_A100")
"""Those that Vertex AI has too, by the same names."""
_V5E = "TPU v5e: in a request of our own, machine: ct5lp-hightpu-4t and tpu_topology: 2x2"
RETIRED_ACCELERATORS: Mapping[str, str] = {
    "NVIDIA_TESLA_K80": f"write type: {_T4}",
    "TPU_V2": f"the nearest is {_V5E}",
    "TPU_V3": f"the nearest is {_V5E}",
    "TPU_V2_POD": f"the nearest is a slice of {_V5E}",
    "TPU_V3_POD": f"the nearest is a slice of {_V5E}",
    "TPU_V4_POD": f"the nearest is a slice of {_V5E}",
}
"""What is gone, and what to write today."""

_UNVERIFIED = "Google no longer documents this machine, so what it becomes is unverified"


def write_cluster(job: LegacyJob) -> None:
    """Write the machines of every role that the job has."""
    tier = _tier(job.spec)
    for role in ROLES:
        if tier is not None:
            _write_of_tier(job, role, tier)
        elif role is MASTER or _has_replicas(job.spec, role):
            _write_custom(job, role)
        if role in job.replicas:
            write_disk(job.configs[role], "diskConfig", job.replicas[role])
    if tier is None:
        _refuse_mixed_machines(job.spec)


def _tier(spec: Fields) -> Tier | None:
    """The tier's own cluster; None where the file describes one."""
    given = spec.get("scaleTier")
    sizes = [key for role in ROLES for key in role.size_keys if spec.has(key)]
    is_missing = given in (None, "SCALE_TIER_UNSPECIFIED")
    if given == CUSTOM:
        return None
    if is_missing and sizes:
        problem = f"missing: {listed(sizes)} need the tier CUSTOM"
        spec.refuse("scaleTier", problem, found="", repair="write scaleTier: CUSTOM")
        return None
    name = BASIC if is_missing else given
    if not isinstance(name, str) or name not in TIERS:
        spec.refuse_choice("scaleTier", (*TIERS, CUSTOM))
        return None if sizes else TIERS[BASIC]
    lines = [_lines(role, machine, count) for role, (count, machine) in TIERS[name].items()]
    offered = [*(tier for tier in TIERS if not TIERS[tier][MASTER][1].retired), CUSTOM]
    _judge(spec, "scaleTier", TIERS[name], f"scaleTier: CUSTOM, {', '.join(lines)}", offered)
    return TIERS[name]


def _judge(spec: Fields, key: str, tier: Tier, lines: str, offered: Collection[str] | None = None) -> None:
    """Warn of the key's machines, or refuse those that are gone. `lines` say the same machines without the key."""
    machines = [machine for _, machine in tier.values()]
    if machines[0].retired:
        repair = machines[0].instead or f"write {lines}"
        spec.refuse(key, machines[0].retired, among=offered, repair=repair)
        return
    notes = "".join(f"; {note}" for note in dict.fromkeys(machine.note for machine in machines) if note)
    missing = "" if spec.has(key) else "missing, so it is BASIC: "
    spec.warn(key, f"{missing}{_UNVERIFIED}{notes}", repair=f"write {lines} to be certain")


def _lines(role: LegacyRole, machine: LegacyMachine, count: int = 0) -> str:
    """What to write for the machine in the tier CUSTOM, and for the count if there is one."""
    lines = [f"{role.type_key}: {machine.machine}"]
    if role.count_key and count:
        lines.append(f"{role.count_key}: {count}")
    if machine.accelerator:
        gpus = f"{{type: {machine.accelerator}, count: {machine.count}}}"
        lines.append(f"{role.config_key}: {{acceleratorConfig: {gpus}}}")
    return ", ".join(lines)


def _write_of_tier(job: LegacyJob, role: LegacyRole, tier: Tier) -> None:
    # An unknown tier is judged as BASIC, and may be any text.
    name, config = plain(str(job.spec.get("scaleTier") or BASIC)), job.configs[role]
    problem = f"the tier {name} sets its own machines"
    for key in filter(job.spec.has, role.size_keys):
        job.spec.refuse(key, problem, repair=f"write scaleTier: CUSTOM, or remove {key}")
    if config.has("acceleratorConfig"):
        repair = f"write scaleTier: CUSTOM and {role.type_key}, or remove acceleratorConfig"
        config.refuse("acceleratorConfig", problem, found="", repair=repair)
    if role in tier:
        count, machine = tier[role]
        _write_machine(job, role, machine, "scaleTier")
        if role.count_key:
            job.replicas[role].put("count", count, job.spec.at("scaleTier"))
    elif job.spec.has(role.config_key):
        repair = f"remove it, or write scaleTier: CUSTOM, {role.type_key} and {role.count_key}"
        job.spec.refuse(role.config_key, f"the tier {name} has no {role.word}", found="", repair=repair)


def _write_machine(job: LegacyJob, role: LegacyRole, machine: LegacyMachine, key: str) -> None:
    source = job.spec.at(key)
    own = job.replicas[role] = job.cluster.inner(role.ours, source)
    own.put("machine", machine.machine, source)
    own.put("tpu_topology", machine.tpu_topology, source)
    if machine.accelerator:
        own.put("accelerator", {"type": machine.accelerator, "count": machine.count}, source)


def _has_replicas(spec: Fields, role: LegacyRole) -> bool:
    count, has_type = spec.number(role.count_key), spec.has(role.type_key)
    if count is None and not has_type and spec.has(role.config_key):
        repair = f"write {role.type_key} and {role.count_key}, or remove it"
        spec.refuse(role.config_key, f"it has no {role.word}", found="", repair=repair)
    is_zero = count == 0 and not isinstance(count, bool)
    return not is_zero and (has_type or count is not None)


def _write_custom(job: LegacyJob, role: LegacyRole) -> None:
    spec, name = job.spec, job.spec.get(role.type_key)
    by, allowed = role.count_key or "the tier CUSTOM", "a Compute Engine machine type or a legacy name"
    _require(spec, role.type_key, by, allowed, "n1-standard-4")
    if isinstance(name, str) and name in MACHINES:
        _write_legacy_machine(job, role, name, MACHINES[name])
    else:
        own = job.replicas[role] = job.cluster.inner(role.ours, spec.at(role.type_key))
        own.put("machine", name, spec.at(role.type_key))
        _write_accelerator(job.configs[role], own)
        if isinstance(name, str) and "_" in name:
            repair = nearest(name, list(MACHINES)) or "write a Compute Engine machine type"
            spec.refuse(role.type_key, "no machine type has this name", among=MACHINES, repair=repair)
    if role.count_key:
        _require(spec, role.count_key, role.type_key, f"the number of {role.word}", "1")
        copy_keys(spec, job.replicas[role], {role.count_key: "count"}, Fields.number)


def _require(spec: Fields, key: str, by: str, allowed: str, example: str) -> None:
    if not spec.has(key):
        repair = f"write for example {key}: {example}"
        spec.refuse(key, f"missing: {by} needs it", allowed=allowed, repair=repair)


def _write_legacy_machine(job: LegacyJob, role: LegacyRole, name: str, machine: LegacyMachine) -> None:
    _write_machine(job, role, machine, role.type_key)
    _judge(job.spec, role.type_key, {role: (1, machine)}, _lines(role, machine))
    # The repair of a machine that is gone says its accelerators too.
    if job.configs[role].has("acceleratorConfig") and not machine.retired:
        problem = f"{name} is a legacy machine, which does not support acceleratorConfig"
        repair = f"write {role.type_key}: {machine.machine}, or remove acceleratorConfig"
        job.configs[role].refuse("acceleratorConfig", problem, found="", repair=repair)


def _write_accelerator(config: Fields, own: OwnDocument) -> None:
    written, is_given = config.fields("acceleratorConfig"), config.has("acceleratorConfig")
    kind = written.get("type")
    is_retired = isinstance(kind, str) and kind in RETIRED_ACCELERATORS
    there = is_given and kind != NO_ACCELERATOR and not is_retired
    accelerator = own.inner("accelerator", written.path, there=there)
    copy_keys(written, accelerator, {"type": "type", "count": "count"}, Fields.number)
    if is_retired:
        repair = RETIRED_ACCELERATORS[str(kind)]
        written.refuse("type", "no longer offered", among=ACCELERATORS, repair=repair)


def _refuse_mixed_machines(spec: Fields) -> None:
    names = {role: name for role in ROLES if isinstance(name := spec.get(role.type_key), str)}
    master = names.get(MASTER)
    for role, name in names.items():
        if master is None or (name in MACHINES) == (master in MACHINES):
            continue
        legacy, mended = (name, role) if name in MACHINES else (master, MASTER)
        # A machine that is gone has a fault already, and today's is Compute Engine's.
        if not MACHINES[legacy].retired:
            problem = f"masterType is {master!r}: use only legacy machines or only Compute Engine machines"
            spec.refuse(role.type_key, problem, repair=f"write {_lines(mended, MACHINES[legacy])}")
