"""The types of disk that machines can boot from."""

from collections.abc import Mapping

DISK_TYPES = ("pd-ssd", "pd-standard", "hyperdisk-balanced")
_HYPERDISK = ("hyperdisk-balanced",)
_OF_SERIES: Mapping[str, tuple[str, ...]] = {
    "a3-ultragpu-": _HYPERDISK,
    "a3-": ("pd-ssd", "hyperdisk-balanced"),
    "a4-": _HYPERDISK,
    "a4x-": _HYPERDISK,
    "g4-": _HYPERDISK,
    "a2-": ("pd-ssd", "pd-standard"),
    "g2-": ("pd-ssd",),
    "n1-": ("pd-ssd", "pd-standard"),
    "n2-": ("pd-ssd", "pd-standard"),
    "e2-": ("pd-ssd", "pd-standard"),
}
"""By the beginning of the machine's name, the first that fits; only what Google documents.

Sources: https://cloud.google.com/compute/docs/accelerator-optimized-machines ("Supported disk types") and
https://cloud.google.com/compute/docs/disks/hd-types/hyperdisk-balanced ("Machine series support"). N4 has no row: Compute
Engine gives it no Persistent Disk, but Vertex AI takes pd-ssd for its default with every machine but A3 Ultra:
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/DiskSpec
"""


def boot_disks(machine: str) -> tuple[str, ...]:
    """The types of disk that the machine can boot from; the first is the service's default."""
    found = (types for series, types in _OF_SERIES.items() if machine.startswith(series))
    return next(found, DISK_TYPES)
