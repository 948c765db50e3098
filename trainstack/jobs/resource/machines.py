"""What the service offers to jobs: regions, machine types with their accelerators, boot disks.

A stack is given the machine types in a file, such as functions/policy.yaml. Without one, it accepts every well-formed name,
and any accelerators with it.

Sources: https://cloud.google.com/vertex-ai/docs/training/configure-compute and .../general/locations, read 2026-11;
`SUPPORTED_REGIONS` of google.cloud.aiplatform 2.7.0, with which a test compares `REGIONS`.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from google.cloud.aiplatform_v1.types.accelerator_type import AcceleratorType

from trainstack.errors import ApiError, Status

_REGIONS = """
    africa-south1 asia-east1 asia-east2 asia-northeast1 asia-northeast2 asia-northeast3 asia-south1 asia-south2
    asia-southeast1 asia-southeast2 australia-southeast1 australia-southeast2 europe-central2 europe-north1 europe-north2
    europe-southwest1 europe-west1 europe-west2 europe-west3 europe-west4 europe-west6 europe-west8 europe-west9
    europe-west12 me-central1 me-central2 me-west1 northamerica-northeast1 northamerica-northeast2 southamerica-east1
    southamerica-west1 us-central1 us-east1 us-east4 us-east5 us-east7 us-south1 us-west1 us-west2 us-west3 us-west4
    us-west8
"""
REGIONS = frozenset(_REGIONS.split())
DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
MIN_DISK_GB, MAX_DISK_GB = 100, 64_000
_NAME = re.compile(r"[a-z][a-z0-9-]*")

# protobuf's generated messages are untyped: google-cloud-aiplatform ships no types for them.
Message = Any


def require_region(location: str) -> None:
    """Raises `ApiError`: PERMISSION_DENIED, in the words of https://github.com/firezone/firezone/pull/7711."""
    if location not in REGIONS:
        message = f"Permission denied on 'locations/{location}' (or it may not exist)."
        raise ApiError(Status.PERMISSION_DENIED, message)


@dataclass(frozen=True, kw_only=True)
class MachineType:
    """What one machine type can have: how many accelerators of each type, or which TPU topologies."""

    accelerators: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    accelerator_required: bool = False
    tpu_topologies: tuple[str, ...] = ()


MachineTypes = Mapping[str, MachineType]
"""By name; empty for a stack that was given none."""


def machine_types_from(path: Path) -> MachineTypes:
    """The machine types that a YAML file lists under `machines`, in rows of types with the same accelerators.

    Raises:
        OSError, yaml.YAMLError: the file cannot be read.
        KeyError, TypeError: it lists no machines in that form.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(path.read_text(), Loader=loader)  # noqa: S506 - both are safe
    return {
        name: MachineType(
            accelerators={kind: tuple(counts) for kind, counts in row.get("accelerators", {}).items()},
            accelerator_required=row.get("accelerator_required", False),
            tpu_topologies=tuple(row.get("tpu_topologies", ())),
        )
        for row in document["machines"]
        for name in row["types"]
    }


def machine_faults(machine: Message, path: str, known: MachineTypes) -> Iterator[str]:
    """One sentence for each fault of a MachineSpec.

    The sentences about accelerators are the service's: https://github.com/PrefectHQ/prefect-gcp/issues/175 and
    https://github.com/GoogleCloudPlatform/vertex-ai-samples/issues/213
    """
    name = machine.machine_type
    if not name:
        yield f"{path}.machine_type: required, for example 'n1-standard-4'."
    elif known and name not in known:
        nearest = difflib.get_close_matches(name, known, n=1)
        hint = f' Did you mean "{nearest[0]}"?' if nearest else ""
        yield f'{path}.machine_type: Machine type "{name}" is not supported.{hint}'
    elif not _NAME.fullmatch(name):
        yield f"{path}.machine_type: expected a name such as 'n1-standard-4', found {name!r}."
    if machine.accelerator_type not in set(AcceleratorType):
        yield f"{path}.accelerator_type: unknown enum value {machine.accelerator_type}."
    elif machine.accelerator_count < 0:
        yield f"{path}.accelerator_count: must not be negative, found {machine.accelerator_count}."
    elif bool(machine.accelerator_type) is not bool(machine.accelerator_count):
        yield f"{path}.accelerator_type: Both `accelerator_type` and `accelerator_count` should be specified or none."
    elif name in known:
        yield from _unfit_accelerators(machine, path, known[name])


def _unfit_accelerators(machine: Message, path: str, kind: MachineType) -> Iterator[str]:
    accelerator, name = AcceleratorType(machine.accelerator_type).name, machine.machine_type
    counts = kind.accelerators.get(accelerator, ())
    if machine.accelerator_type and not counts:
        yield f'{path}.accelerator_type: Accelerator "{accelerator}" is not supported for machine type "{name}".'
    elif machine.accelerator_type and machine.accelerator_count not in counts:
        allowed = ", ".join(map(str, counts))
        yield (
            f'{path}.accelerator_count: machine type "{name}" has {allowed} of "{accelerator}", '
            f"found {machine.accelerator_count}."
        )
    elif kind.accelerator_required and not machine.accelerator_type:
        yield f'{path}.accelerator_type: machine type "{name}" has {" or ".join(kind.accelerators)}; give type and count.'
    topology = machine.tpu_topology
    if (topology or kind.tpu_topologies) and topology not in kind.tpu_topologies:
        allowed = " or ".join(kind.tpu_topologies) or "none"
        yield f'{path}.tpu_topology: machine type "{name}" has {allowed}, found {topology!r}.'


def disk_faults(disk: Message, path: str) -> Iterator[str]:
    """One sentence for each fault of a DiskSpec; what it leaves out is the service's choice."""
    if disk.boot_disk_type and disk.boot_disk_type not in DISK_TYPES:
        yield f"{path}.boot_disk_type: expected one of {', '.join(DISK_TYPES)}, found {disk.boot_disk_type!r}."
    if disk.boot_disk_size_gb and not MIN_DISK_GB <= disk.boot_disk_size_gb <= MAX_DISK_GB:
        yield f"{path}.boot_disk_size_gb: expected {MIN_DISK_GB} to {MAX_DISK_GB}, found {disk.boot_disk_size_gb}."
