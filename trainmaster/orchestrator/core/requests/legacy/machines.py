"""The scale tier and the machines of every role, as our own cluster."""

from collections.abc import Mapping
from typing import Any, TypeGuard

from trainmaster.orchestrator.core.documents.faults import json_path, listed, nearest, plain
from trainmaster.orchestrator.core.requests.legacy.advice import (
    and_gpus,
    instead,
    machine_said,
    said,
    tiers_of_today,
    write_custom,
)
from trainmaster.orchestrator.core.requests.legacy.reading import (
    MASTER,
    OTHERS,
    ROLES,
    Counted,
    Reading,
    Role,
)
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
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path, not_one_of, number

_UNVERIFIED = "no reference page says any more which machine this was; the row of our table is unverified"


class MachineReading(Reading):
    """The part of the translation that says what runs where."""

    def _cluster(self, mine: dict[str, Any], spec: Fields) -> None:
        for role in ROLES:
            self._configs[role.ours] = self._fields(spec, role.config_key)
        cluster: dict[str, Any] = {}
        mine["cluster"] = cluster
        self._places["$.cluster"] = json_path(spec.path)
        tier = self._tier(spec)
        if tier is None:
            self._custom(cluster, spec)
        else:
            self._as_tier(cluster, spec, tier)

    def _tier(self, spec: Fields) -> Tier | None:
        """The tier's own cluster; None where the file describes one."""
        given, path = spec.get("scaleTier"), spec.at("scaleTier")
        types = [key for role in ROLES for key in role.size_keys if spec.has(key)]
        if given in (None, "SCALE_TIER_UNSPECIFIED"):
            if not types:
                basic = TIERS["BASIC"]
                self._warn(
                    path, f"missing: it is BASIC. {_UNVERIFIED}: {said(basic)}", repair=write_custom(basic)
                )
                return basic
            repair = "write scaleTier: CUSTOM"
            self._wrong(path, f"missing: {listed(types)} belong to the tier CUSTOM", repair=repair)
            return None
        if given == CUSTOM:
            return None
        if not isinstance(given, str) or given not in TIERS:
            self._faults.append(not_one_of(path, given, (*TIERS, CUSTOM)))
            return None if types else TIERS["BASIC"]
        tier = TIERS[given]
        if tier.retired:
            self._wrong(path, tier.retired, found=given, allowed=tiers_of_today(), repair=instead(tier.chief))
        else:
            self._warn(path, f"{_UNVERIFIED}: {said(tier)}", found=given, repair=write_custom(tier))
        return tier

    def _as_tier(self, cluster: dict[str, Any], spec: Fields, tier: Tier) -> None:
        source = spec.at("scaleTier")
        # An unknown tier is judged as BASIC, and may be any text.
        name = plain(str(spec.get("scaleTier") or "BASIC"))
        for role in ROLES:
            for key in role.size_keys:
                if spec.has(key):
                    self._wrong(
                        spec.at(key),
                        f"the tier {name} has machines of its own",
                        found=spec.get(key),
                        repair=f"write scaleTier: {CUSTOM}, or take {key} out",
                    )
            config = self._configs[role.ours]
            if config.has("acceleratorConfig"):
                self._wrong(
                    config.at("acceleratorConfig"),
                    f"the tier {name} has machines of its own",
                    repair=f"write scaleTier: {CUSTOM} and {role.type_key}, or take acceleratorConfig out",
                )
        self._put_machine(cluster, MASTER, tier.chief, source)
        for role, pool in zip(OTHERS, (tier.workers, tier.parameter_servers, tier.evaluators), strict=True):
            if pool is not None:
                fields = self._put_machine(cluster, role, pool.machine, source)
                self._put(fields, ("cluster", role.ours), "count", pool.count, source)
            elif spec.has(role.config_key):
                self._wrong(
                    spec.at(role.config_key),
                    f"the tier {name} has no {role.word}",
                    repair=f"take it out, or write scaleTier: {CUSTOM}, {role.type_key} and {role.count_key}",
                )
        for role in ROLES:
            self._disk(cluster, role)

    def _put_machine(
        self, cluster: dict[str, Any], role: Role, machine: Machine, source: Path
    ) -> dict[str, Any]:
        here: Path = ("cluster", role.ours)
        fields: dict[str, Any] = {}
        self._put(cluster, ("cluster",), role.ours, fields, source)
        self._put(fields, here, "machine", machine.machine, source)
        self._put(fields, here, "tpu_topology", machine.tpu_topology, source)
        if machine.gpus:
            gpus = {"type": machine.gpus.type, "count": machine.gpus.count}
            self._put(fields, here, "accelerator", gpus, source)
        return fields

    def _custom(self, cluster: dict[str, Any], spec: Fields) -> None:
        if spec.get(MASTER.type_key) is None:
            self._wrong(
                spec.at(MASTER.type_key),
                "missing: the tier CUSTOM needs it",
                allowed="a machine of Compute Engine, or a legacy machine name",
                repair="write for example masterType: n1-standard-4",
            )
        self._role(cluster, spec, MASTER)
        for role in OTHERS:
            if self._has_replicas(spec, role):
                fields = self._role(cluster, spec, role)
                count = number(spec.get(role.count_key))
                self._put(fields, ("cluster", role.ours), "count", count, spec.at(role.count_key))
        self._one_category(spec)

    def _has_replicas(self, spec: Fields, role: Counted) -> bool:
        count, machine = number(spec.get(role.count_key)), spec.get(role.type_key)
        if count is None and machine is None:
            if spec.has(role.config_key):
                self._wrong(
                    spec.at(role.config_key),
                    f"there are no {role.word} for it",
                    repair=f"write {role.type_key} and {role.count_key}, or take it out",
                )
            return False
        if count is None:
            self._wrong(
                spec.at(role.count_key),
                f"missing: {role.type_key} needs it",
                allowed=f"how many {role.word} there are",
                repair=f"write {role.count_key}: 1, or take {role.type_key} out",
            )
        elif count == 0 and not isinstance(count, bool):
            return False
        elif machine is None:
            self._wrong(
                spec.at(role.type_key),
                f"missing: {role.count_key} needs it",
                allowed="a machine of Compute Engine, or a legacy machine name",
                repair=f"write for example {role.type_key}: n1-standard-4, or take {role.count_key} out",
            )
        return True

    def _role(self, cluster: dict[str, Any], spec: Fields, role: Role) -> dict[str, Any]:
        config, source, name = self._configs[role.ours], spec.at(role.type_key), spec.get(role.type_key)
        row = MACHINES.get(name) if isinstance(name, str) else None
        if row is not None:
            fields = self._legacy_machine(cluster, role, row, spec)
        else:
            here: Path = ("cluster", role.ours)
            fields = {}
            self._put(cluster, ("cluster",), role.ours, fields, source)
            self._put(fields, here, "machine", name, source)
            self._accelerator(fields, here, config)
            if isinstance(name, str) and "_" in name:
                repair = nearest(name, list(MACHINES)) or "write a machine of Compute Engine"
                self._wrong(
                    source, "no machine of that name", found=name, allowed=listed(MACHINES, 20), repair=repair
                )
        self._disk(cluster, role)
        return fields

    def _legacy_machine(
        self, cluster: dict[str, Any], role: Role, row: Machine, spec: Fields
    ) -> dict[str, Any]:
        config, source, name = self._configs[role.ours], spec.at(role.type_key), spec.get(role.type_key)
        if row.retired:
            self._wrong(source, row.retired, found=name, repair=instead(row, role))
        else:
            note = f"; {row.note}" if row.note else ""
            repair = f"write {role.type_key}: {row.machine}{and_gpus(row, role)} to be sure"
            self._warn(
                source, f"{_UNVERIFIED}: it becomes {machine_said(row)}{note}", found=name, repair=repair
            )
        # What to write instead of a machine that is gone says its accelerators too.
        if config.has("acceleratorConfig") and not row.retired:
            self._wrong(
                config.at("acceleratorConfig"),
                f"{name} is a legacy machine, which takes no acceleratorConfig",
                repair=f"write {role.type_key}: {row.machine}, or take acceleratorConfig out",
            )
        return self._put_machine(cluster, role, row, source)

    def _one_category(self, spec: Fields) -> None:
        master = spec.get(MASTER.type_key)
        for role in OTHERS:
            name = spec.get(role.type_key)
            # A machine that is gone has a fault already, and today's is Compute Engine's.
            if not (_is_there(master) and _is_there(name)) or (name in MACHINES) == (master in MACHINES):
                continue
            legacy, mended = (name, role) if name in MACHINES else (master, MASTER)
            machine = MACHINES[legacy]
            self._wrong(
                spec.at(role.type_key),
                f"masterType is {master!r}: all machines are legacy ones, or all are Compute Engine's",
                found=name,
                repair=f"write {mended.type_key}: {machine.machine}{and_gpus(machine, mended)}",
            )

    def _accelerator(self, fields: dict[str, Any], here: Path, config: Fields) -> None:
        written = self._fields(config, "acceleratorConfig")
        if not config.has("acceleratorConfig"):
            return
        kind, count = written.get("type"), number(written.get("count"))
        if isinstance(kind, str) and kind in RETIRED_ACCELERATORS:
            repair = RETIRED_ACCELERATORS[kind]
            allowed = listed(ACCELERATORS)
            self._wrong(written.at("type"), "no longer offered", found=kind, allowed=allowed, repair=repair)
        elif kind != NO_ACCELERATOR:
            mine: dict[str, Any] = {}
            inner = (*here, "accelerator")
            self._put(fields, here, "accelerator", mine, written.path)
            self._put(mine, inner, "type", kind, written.at("type"))
            self._put(mine, inner, "count", count, written.at("count"))
        self._faults += written.unknown()

    def _disk(self, cluster: Mapping[str, Any], role: Role) -> None:
        config = self._configs[role.ours]
        disk = self._fields(config, "diskConfig")
        if not config.has("diskConfig") or role.ours not in cluster:
            return
        mine: dict[str, Any] = {}
        here: Path = ("cluster", role.ours)
        self._put(cluster[role.ours], here, "disk", mine, disk.path)
        self._put(mine, (*here, "disk"), "type", disk.get("bootDiskType"), disk.at("bootDiskType"))
        size = number(disk.get("bootDiskSizeGb"))
        self._put(mine, (*here, "disk"), "size_gb", size, disk.at("bootDiskSizeGb"))
        self._faults += disk.unknown()


def _is_there(name: object) -> TypeGuard[str]:
    return isinstance(name, str) and not (name in MACHINES and MACHINES[name].retired)
