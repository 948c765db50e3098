"""SkyPilot's task files, recognised and answered with a request that starts the same program.

Source: https://docs.skypilot.co/en/latest/reference/yaml-spec.html, read 2026-11.
"""

import re
from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.reading import SMALL_MACHINE

_OURS = frozenset({"model_name", "cluster", "script", "image"})
_THEIRS = frozenset({"resources", "setup", "num_nodes", "workdir", "envs", "file_mounts"})
_START = re.compile(r"\b(python3?|(?P<launcher>torchrun|accelerate))\b.*?\s(?P<file>\S+\.py)(?P<args>.*)")
_RUN_MAX_CHARS = 4000


def is_task(value: Mapping[str, object]) -> bool:
    """Whether a document is a SkyPilot task."""
    return "run" in value and bool(_THEIRS & value.keys()) and not _OURS & value.keys()


# Any: values that no schema has validated.
def request_text(task: Mapping[str, Any], file: str) -> str:
    """What to submit in place of a task, with the keys that it leaves out."""
    import yaml

    start = _START.search(str(task["run"])[:_RUN_MAX_CHARS].replace("\\\n", " "))
    launcher, gpu = start and start["launcher"], text_at(task, "resources", "accelerators")
    request = {
        "model_name": model_name_from(str(task.get("name") or "model")),
        "script": {"file": start["file"] if start else "train.py"}
        | ({"launcher": launcher} if launcher else {}),
        "args": start["args"].split() if start else [],
        "cluster": {"chief": {"gpu": gpu} if gpu else {"machine": SMALL_MACHINE}},
    }
    left = ", ".join(sorted(map(str, task.keys() - {"name", "run", *(["resources"] if gpu else [])})))
    rest = f"It leaves out {left}. Packages belong in requirements.txt or pyproject.toml." if left else ""
    return f"{file}: a SkyPilot task, not a request. As a request it would be:\n\n{yaml.safe_dump(request, sort_keys=False)}\n{rest}".rstrip()
