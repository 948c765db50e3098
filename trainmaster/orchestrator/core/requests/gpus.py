"""`gpu: L4:1`: GPUs by their short names, and the machine type that a number of them chooses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path, listed, nearest
from trainmaster.orchestrator.core.documents.values import Path, text_at
from trainmaster.orchestrator.core.policy.policy import TPU, Machines
from trainmaster.orchestrator.core.requests.draft import FALLBACKS, ROLES, iter_fallbacks
from trainmaster.orchestrator.core.requests.own_document import Translated, Translation
from trainmaster.orchestrator.core.requests.spec import Accelerator

NAMES: Mapping[str, str] = {
    "T4": "NVIDIA_TESLA_T4",
    "P4": "NVIDIA_TESLA_P4",
    "P100": "NVIDIA_TESLA_P100",
    "V100": "NVIDIA_TESLA_V100",
    "L4": "NVIDIA_L4",
    "A100": "NVIDIA_TESLA_A100",
    "A100-80GB": "NVIDIA_A100_80GB",
    "H100": "NVIDIA_H100_80GB",
    "H100-MEGA": "NVIDIA_H100_MEGA_80GB",
    "H200": "NVIDIA_H200_141GB",
    "B200": "NVIDIA_B200",
    "GB200": "NVIDIA_GB200",
    "RTX-PRO-6000": "NVIDIA_RTX_PRO_6000",
}
"""GPUs by the short names that SkyPilot and dstack use, with Vertex AI's names.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/MachineSpec#AcceleratorType (2026-11)
"""
SHORT_NAMES: Mapping[str, str] = {name: short for short, name in NAMES.items()}
GPU = "gpu"
_WRITTEN_OUT = (("machine",), ("accelerator",), ("accelerator", "type"), ("accelerator", "count"))
_FORM = re.compile(r"([A-Za-z][A-Za-z0-9_-]*)(?::([1-9][0-9]{0,3}))?")


@dataclass(frozen=True, kw_only=True)
class GpuMachine:
    """A machine type with the GPUs that a request asked for."""

    machine: str
    accelerator: Accelerator


def known_gpus(machines: Sequence[Machines]) -> dict[str, tuple[int, ...]]:
    """The GPUs of these machines, by their short names, each with the numbers that one machine can have."""
    counts: dict[str, set[int]] = {}
    for name, row_counts in _gpu_counts(machines):
        counts.setdefault(SHORT_NAMES.get(name, name), set()).update(row_counts)
    return {name: tuple(sorted(numbers)) for name, numbers in sorted(counts.items())}


def accelerator_type(gpu: str, machines: Sequence[Machines]) -> str | None:
    """Vertex AI's name of a GPU, which may be short or full, in any case, with '-' or '_'; None if no machine has it."""
    full = {_spelling(name): name for name, _ in _gpu_counts(machines)}
    known = {_spelling(short): name for short, name in NAMES.items() if name in full.values()}
    return {**known, **full}.get(_spelling(gpu))


def choose_machine(
    gpu: str, machines: Sequence[Machines], *, machine: str | None = None, at: Path = (GPU,)
) -> GpuMachine | Fault:
    """The first machine type of the table that has exactly these GPUs: `L4`, `L4:1` or `NVIDIA_L4:1`.

    The shipped policy's table begins with the smallest types. If the request also names a `machine`, that one must have
    the GPUs. `at` is the place of the `gpu`, for faults.
    """
    form = _FORM.fullmatch(gpu)
    if form is None:
        allowed = "a GPU and how many, for example L4:1"
        return Fault(at=at, problem="not in the expected format", value=gpu, allowed=allowed)
    kind, count = accelerator_type(form[1], machines), int(form[2] or 1)
    if kind is None:
        return _unknown(gpu, form[1], machines, at)
    rows = (row for row in machines if count in (row.accelerators or {}).get(kind, ()))
    types = [name for row in rows for name in row.types]
    if not types:
        among = known_gpus(machines)[SHORT_NAMES.get(kind, kind)]
        return Fault(at=at, problem=f"no machine type has {count} {kind}", value=gpu, among=among)
    if machine is not None and machine not in types:
        return Fault(
            at=(*at[:-1], "machine"),
            problem=f"it does not have {count} {kind}, which gpu asks for",
            value=machine,
            among=types,
            repair=f"remove machine: gpu then chooses {types[0]}",
        )
    return GpuMachine(machine=machine or types[0], accelerator=Accelerator(type=kind, count=count))


def with_machines(meant: Translated, machines: Sequence[Machines]) -> Translated:
    """The request with the machine and accelerators of every `gpu` written out, also in its fallbacks.

    A faulty `gpu` stays, with its fault. Faults of what was written out have the path of the `gpu`.
    """
    document, notes = dict(meant.document), Translation()
    if isinstance(document.get("cluster"), Mapping):
        document["cluster"] = _written_out(document["cluster"], machines, ("cluster",), notes)
    if isinstance(document.get(FALLBACKS), list):
        document[FALLBACKS] = list(document[FALLBACKS])
        for index, patch in iter_fallbacks(meant.document):
            if isinstance(patch.get("cluster"), Mapping):
                here = (FALLBACKS, index, "cluster")
                cluster = _written_out(patch["cluster"], machines, here, notes)
                document[FALLBACKS][index] = {**patch, "cluster": cluster}
    chosen = {own: meant.written_path(written) for own, written in notes.places.items()}
    faults = (*meant.faults, *(fault.moved(meant.written_path) for fault in notes.faults))
    return replace(meant, document=document, places={**meant.places, **chosen}, faults=faults)


def _written_out(
    cluster: Mapping[str, Any], machines: Sequence[Machines], here: Path, notes: Translation
) -> dict[str, Any]:
    written = dict(cluster)
    for role in ROLES:
        gpu, path = text_at(cluster, role, GPU), (*here, role)
        if gpu is None:
            continue
        chosen = _machine_of(cluster[role], gpu, machines, path)
        if isinstance(chosen, Fault):
            notes.faults.append(chosen)
            if chosen.path == json_path((*path, "machine")):
                # Alone, a fallback's machine would also contradict the accelerator that the request has.
                written[role] = {key: value for key, value in cluster[role].items() if key != "machine"}
            continue
        rest = {key: value for key, value in cluster[role].items() if key != GPU}
        written[role] = {**rest, "machine": chosen.machine, "accelerator": dict(vars(chosen.accelerator))}
        for key, *part in _WRITTEN_OUT:
            if key not in rest:
                notes.place((*path, key, *part), (*path, GPU))
    return written


def _machine_of(
    role: Mapping[str, Any], gpu: str, machines: Sequence[Machines], path: Path
) -> GpuMachine | Fault:
    chosen = choose_machine(gpu, machines, machine=text_at(role, "machine"), at=(*path, GPU))
    if isinstance(chosen, Fault) or role.get("accelerator", given := vars(chosen.accelerator)) == given:
        return chosen
    return Fault(
        at=(*path, "accelerator"),
        problem=f"it contradicts gpu: {gpu}",
        value=role["accelerator"],
        allowed=f"type {chosen.accelerator.type} and count {chosen.accelerator.count}",
        repair="remove accelerator or gpu",
    )


def _unknown(gpu: str, word: str, machines: Sequence[Machines], at: Path) -> Fault:
    known = known_gpus(machines)
    repair = nearest(word.upper(), list(known))
    if word.upper().startswith("TPU"):
        repair = "write machine, and tpu_topology or accelerator, for TPUs"
    among = [f"{name} ({listed(numbers)})" for name, numbers in known.items()]
    return Fault(at=at, problem="no machine type has this GPU", value=gpu, among=among, repair=repair)


def _gpu_counts(machines: Sequence[Machines]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Every GPU of every row, with its counts; TPUs are chosen by their machine types."""
    for row in machines:
        for name, counts in (row.accelerators or {}).items():
            if not name.startswith(TPU):
                yield name, counts


def _spelling(name: str) -> str:
    return name.upper().replace("_", "-").removeprefix("NVIDIA-").removeprefix("TESLA-")
