"""The topology of a stack for tests that start a separate one."""

from pathlib import Path

import yaml

from .project import ROOT

_FUNCTIONS_OF_A_DROP = ("on-request-uploaded", "on-job-log", "on-tick")


def quick_topology(folder: Path, *, timeout_s: int = 10) -> Path:
    """The project's own with no more functions than a dropped request needs, their leases soon over."""
    topology = yaml.safe_load((ROOT / "trainmaster" / "deploy" / "topology.yaml").read_text())
    topology["functions"] = {
        name: {**topology["functions"][name], "timeout_s": timeout_s} for name in _FUNCTIONS_OF_A_DROP
    }
    for sink in topology["sinks"].values():
        sink["filter_file"] = str(ROOT / "trainmaster" / "deploy" / sink["filter_file"])
    path = folder / "topology.yaml"
    path.write_text(yaml.safe_dump(topology))
    return path
