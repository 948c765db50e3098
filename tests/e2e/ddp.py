"""Trains a small network with DistributedDataParallel on gloo and leaves every rank's weights.

    python -m trainer.launch --framework torch -- python ddp.py [--out DIR]

Each rank takes its own part of every batch, so equal weights on all ranks, the same as of one process with
whole batches, are proof that gradients were averaged. Weights go to DIR, or to AIP_CHECKPOINT_DIR, as rank-N.json.
"""

import argparse
import json
import os
from pathlib import Path

import torch
from torch.nn.parallel import DistributedDataParallel

STEPS = 20
BATCH = 16  # examples of all ranks together
INPUTS = 5


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=None)
    out = parser.parse_args().out or checkpoint_directory()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    rank, size = torch.distributed.get_rank(), torch.distributed.get_world_size()
    weights, losses = train(rank, size)
    out.mkdir(parents=True, exist_ok=True)
    told = {"rank": rank, "size": size, "weights": weights, "losses": losses}
    (out / f"rank-{rank}.json").write_text(json.dumps(told))
    print(f"rank {rank} of {size}: loss {losses[0]:.4f} to {losses[-1]:.4f}", flush=True)  # noqa: T201 - the job's log
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def train(rank: int, size: int) -> tuple[list[float], list[float]]:
    """This rank's weights, flat, after the last step, and the loss of its own examples at each."""
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
    return [value for each in model.parameters() for value in each.flatten().tolist()], losses


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The examples of one step, the same on every rank: inputs float64 [16, 5], targets float64 [16, 1]."""
    source = torch.Generator().manual_seed(step)
    inputs = torch.randn(BATCH, INPUTS, generator=source, dtype=torch.float64)
    return inputs, inputs.mean(dim=1, keepdim=True)


def checkpoint_directory() -> Path:
    root = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")
    return Path(root, os.environ["AIP_CHECKPOINT_DIR"].removeprefix("gs://"))


if __name__ == "__main__":
    main()
