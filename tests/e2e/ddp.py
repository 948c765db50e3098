"""Trains a small network with DistributedDataParallel on gloo and leaves every rank's weights.

    python -m trainer.launch --framework torch -- python ddp.py [--out DIR]

Each rank takes its own part of every batch, so equal weights on all ranks, the same as of one process with
whole batches, are proof that gradients were averaged. Weights go to DIR, or to AIP_CHECKPOINT_DIR, as rank-N.json;
rank 0 exports its model to AIP_MODEL_DIR where that is set.
"""

import argparse
import hashlib
import json
import os
from datetime import UTC, datetime
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
BATCH = 16  # examples of all ranks together
INPUTS = 5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=None)
    out = parser.parse_args().out or directory("AIP_CHECKPOINT_DIR")
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    network, losses = train(rank, size)
    weights = [value for each in network.parameters() for value in each.flatten().tolist()]
    out.mkdir(parents=True, exist_ok=True)
    told = {"rank": rank, "size": size, "weights": weights, "losses": losses}
    (out / f"rank-{rank}.json").write_text(json.dumps(told))
    print(f"rank {rank} of {size}: loss {losses[0]:.4f} to {losses[-1]:.4f}", flush=True)  # noqa: T201 - the job's log
    if rank == 0 and "AIP_MODEL_DIR" in os.environ:
        export(network, size, losses[-1])
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def train(rank: int, size: int) -> tuple[torch.nn.Module, list[float]]:
    """This rank's network after the last step, and the loss of its examples at each step."""
    torch.manual_seed(100 + rank)  # different at first on every rank: DDP spreads those of rank 0
    if rank == 0:
        torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(INPUTS, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    model = DistributedDataParallel(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for step in range(STEPS):
        inputs, targets = batch(step)
        mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(inputs[mine]), targets[mine])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return network, losses


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The examples of one step, the same on every rank: inputs float64 [16, 5], targets float64 [16, 1]."""
    source = torch.Generator().manual_seed(step)
    inputs = torch.randn(BATCH, INPUTS, generator=source, dtype=torch.float64)
    return inputs, inputs.mean(dim=1, keepdim=True)


def export(network: torch.nn.Module, size: int, loss: float) -> None:
    """The model and, last, its manifest: schemas/model_export.v1.schema.json."""
    out = directory("AIP_MODEL_DIR")
    out.mkdir(parents=True, exist_ok=True)
    torch.save(network.state_dict(), out / "model.pt")
    content = (out / "model.pt").read_bytes()
    manifest = {
        "schema": "model_export.v1",
        "model_uri": os.environ["AIP_MODEL_DIR"],
        "created_at": datetime.now(UTC).isoformat(),
        "files": [
            {"path": "model.pt", "size_bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        ],
        "metrics": {"loss": loss},
        "dataset": {"name": "means", "version": "1.0.0", "train_split": "train", "evaluation_split": None},
        "frameworks": {"torch": torch.__version__},
        "training": {
            "epochs": 1,
            "global_batch_size": BATCH,
            "replicas_in_sync": size,
            "strategy": "DistributedDataParallel",
        },
    }
    (out / "export.json").write_text(json.dumps(manifest))


def directory(variable: str) -> Path:
    """Where the bucket that the variable names is mounted."""
    return Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), os.environ[variable].removeprefix("gs://"))


if __name__ == "__main__":
    main()
