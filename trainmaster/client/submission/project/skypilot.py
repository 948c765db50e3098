"""SkyPilot's task files, answered with the request that they would be, as far as it goes.

Source: https://docs.skypilot.co/en/latest/reference/yaml-spec.html, read 2026-11.
"""

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.reading import SMALL_MACHINE

_OURS = frozenset({"model_name", "cluster", "script", "image"})
_THEIRS = frozenset({"resources", "setup", "num_nodes", "workdir", "envs", "file_mounts"})
_TAKEN = frozenset({"name", "resources", "num_nodes", "workdir", "envs", "run"})
_START = re.compile(r"^.*\b(?P<starter>python3?|torchrun|accelerate)\b.*?(?: -m (?P<module>[\w.]+)|\s(?P<file>\S+\.py))(?P<args>.*)$", re.MULTILINE)  # fmt: skip
"""The line that starts the program."""
_RUN_MAX_CHARS = 4000


def is_task(value: Mapping[str, object]) -> bool:
    """Whether a document is a SkyPilot task."""
    return "run" in value and bool(_THEIRS & value.keys()) and not _OURS & value.keys()


# Any: values that no schema has validated.
def request_text(task: Mapping[str, Any], file: str) -> str:
    """What to submit in place of a task, with the keys that it leaves out."""
    import yaml

    start = _START.search(str(task["run"])[:_RUN_MAX_CHARS].replace("\\\n", " "))
    script = {"root": str(task.get("workdir") or ".")}
    script |= {key: start[key] for key in ("module", "file") if start[key]} if start else {"file": "train.py"}
    if start and not start["starter"].startswith("python"):
        script["launcher"] = start["starter"]
    resources, nodes = mapping_at(task, "resources"), task.get("num_nodes")
    gpu = resources.get("accelerators")
    gpu = ":".join(map(str, *gpu.items())) if isinstance(gpu, Mapping) and len(gpu) == 1 else gpu
    pool = {"gpu": str(gpu)} if gpu else {"machine": str(resources.get("instance_type", SMALL_MACHINE))}
    workers = {"workers": {"count": nodes - 1, **pool}} if isinstance(nodes, int) and nodes > 1 else {}
    request = {
        "model_name": model_name_from(str(task.get("name") or "model")),
        "script": script,
        "args": start["args"].split() if start else [],
        "env": {str(name): str(value) for name, value in mapping_at(task, "envs").items()},
        "cluster": {"chief": pool, **workers},
        "scheduling": {"spot": True} if resources.get("use_spot") is True else {},
    }
    kept = yaml.safe_dump({key: value for key, value in request.items() if value}, sort_keys=False)
    left = ", ".join(sorted(map(str, task.keys() - _TAKEN)))
    rest = f"It leaves out {left}. Packages belong in requirements.txt or pyproject.toml." if left else ""
    return f"{file}: a SkyPilot task, not a request. As a request it would be:\n\n{kept}\n{rest}".rstrip()
