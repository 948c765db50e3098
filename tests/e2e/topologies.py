"""Topologies of stacks for tests that start a separate one."""

from pathlib import Path
from typing import Any

import yaml

from .project import ROOT

_FUNCTIONS_OF_A_DROP = ("on-request-uploaded", "on-job-log", "on-tick")
_DEPLOY = ROOT / "trainmaster" / "deploy"


def own_topology() -> dict[str, Any]:
    """The project's own, which may be written to another folder."""
    topology: dict[str, Any] = yaml.safe_load((_DEPLOY / "topology.yaml").read_text())
    for sink in topology["sinks"].values():
        sink["filter_file"] = str(_DEPLOY / sink["filter_file"])
    return topology


def written(topology: dict[str, Any], folder: Path) -> Path:
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(topology, sort_keys=False))
    return path


def quick_topology(folder: Path, *, timeout_s: int = 10) -> Path:
    """The project's own with no more functions than a dropped request needs, their leases soon over."""
    topology = own_topology()
    topology["functions"] = {
        name: {**topology["functions"][name], "timeout_s": timeout_s} for name in _FUNCTIONS_OF_A_DROP
    }
    return written(topology, folder)
