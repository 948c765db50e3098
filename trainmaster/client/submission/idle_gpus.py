"""GPUs that a script would leave idle: it is one process on a machine with several, and names nothing that uses them all."""

import re
from itertools import islice

from trainmaster.client.submission.pack import Packed
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.requests.request import Request

_FILES_MAX, _FILE_MAX_CHARS = 200, 200_000
_USES_SEVERAL = re.compile(
    r"DataParallel|MirroredStrategy|tf\.distribute|torchrun|torch\.distributed|multiprocessing|subprocess|os\.exec"
    r"|LOCAL_RANK|accelerat|deepspeed|lightning|\bTrainer\b|device_map|num_gpus|gpu_ids|tensor_parallel|pmap|shard_map"
    r"|\b(?:jax|ray|horovod|dask|vllm|fastai|composer|catboost|ultralytics|detectron2)\b"
)
"""What frameworks call the ways to several GPUs, and libraries that take all they find or start processes themselves."""


def idle_gpus(request: Request, packed: Packed) -> Fault | None:
    """A warning, unless a launcher starts a process for each GPU, or a word in the sources of the folder may use several."""
    cluster, script = request.spec.cluster, request.document.get("script")
    launcher = script.get("launcher") if isinstance(script, dict) else None
    pools = {"chief": cluster.chief, "workers": cluster.workers}
    counts = {role: pool.accelerator.count for role, pool in pools.items() if pool and pool.accelerator}
    role = max(counts, key=lambda role: counts[role], default="")
    if launcher not in (None, "none") or not role or counts[role] == 1 or _may_use_several(packed):
        return None
    return Fault(
        at=("cluster", role),
        problem=f"{counts[role]} GPUs, one process: {packed.file} names nothing that uses more than one of them",
        repair="for a process on each GPU add --launcher torchrun, and use torch.distributed; or ask for one GPU",
    )


def _may_use_several(packed: Packed) -> bool:
    names = islice((name for name in packed.files if name.endswith(".py")), _FILES_MAX)
    for path in (packed.script, *(packed.folder / name for name in names)):
        with path.open(encoding="utf-8", errors="replace") as file:
            if _USES_SEVERAL.search(file.read(_FILE_MAX_CHARS)):
                return True
    return False
