"""A warning of GPUs that stay idle: a script is one process, and names nothing that uses several."""

import re

from trainmaster.client.submission.pack import Packed
from trainmaster.orchestrator.core.admission.candidates import pools_of
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.requests.request import Request

_USES_SEVERAL = re.compile(
    r"DataParallel|MirroredStrategy|tf\.distribute|torchrun|torch\.distributed|multiprocessing|subprocess|os\.exec"
    r"|LOCAL_RANK|accelerat|deepspeed|lightning|\bTrainer\b|device_map|num_gpus|gpu_ids|tensor_parallel|pmap|shard_map"
    r"|\b(?:jax|ray|horovod|dask|vllm|fastai|composer|catboost|ultralytics|detectron2)\b"
)
"""What frameworks call the ways to several GPUs, and libraries that take all they find or start processes themselves."""


def idle_gpus(request: Request, packed: Packed) -> Fault | None:
    """A warning, unless a launcher starts a process for each GPU, or a word in the packed sources may use several."""
    script, roles = request.document.get("script"), pools_of(request.spec.cluster)
    launcher = script.get("launcher", "none") if isinstance(script, dict) else "none"
    count, role = max(
        ((pool.accelerator.count, role) for role, pool in roles if pool.accelerator), default=(1, "")
    )
    sources = (packed.folder / name for name in packed.files if name.endswith(".py"))
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in (packed.script, *sources))
    if count == 1 or launcher != "none" or any(map(_USES_SEVERAL.search, texts)):
        return None
    return Fault(
        at=("cluster", role),
        problem=f"{count} GPUs, one process: {packed.file} names nothing that uses more than one of them",
        repair="for a process on each GPU add --launcher torchrun, and use torch.distributed; or ask for one GPU",
    )
