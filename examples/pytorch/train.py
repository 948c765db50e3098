"""Train a small PyTorch classifier with DistributedDataParallel and leave it, with its metrics, where Vertex AI says.

Every replica runs this script. It learns whether a point of the square from -1 to 1 lies in the disc of half its area.
"""

import argparse
import json
import math
import os

import torch
import torch.distributed as dist
from google.cloud import storage
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=200)
args = parser.parse_args()

cluster_spec = json.loads(os.environ["CLUSTER_SPEC"])
pools, task = cluster_spec["cluster"], cluster_spec["task"]
replicas = [(pool, index) for pool in sorted(pools) for index in range(len(pools[pool]))]
rank = replicas.index((task["type"], task["index"]))
chief = pools["workerpool0"][0]
dist.init_process_group("gloo", init_method=f"tcp://{chief}", rank=rank, world_size=len(replicas))


def draw(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, float32 [count, 2], and 1.0 for each in the disc, float32 [count, 1]."""
    points = torch.rand(count, 2, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return points, (points.square().sum(dim=1, keepdim=True) < 2 / math.pi).float()


network = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
model = DistributedDataParallel(network)
optimizer = torch.optim.Adam(model.parameters(), lr=0.03)
for step in range(args.steps):
    points, inside = draw(64, seed=step * len(replicas) + rank)  # different points on each replica
    optimizer.zero_grad()
    loss = torch.nn.functional.binary_cross_entropy_with_logits(model(points), inside)
    loss.backward()
    optimizer.step()

if rank == 0:
    points, inside = draw(1000, seed=2**32)
    accuracy = ((network(points) > 0) == (inside > 0)).float().mean().item()
    bucket, _, prefix = os.environ["AIP_MODEL_DIR"].removeprefix("gs://").partition("/")
    model_dir = storage.Client().bucket(bucket)
    torch.save(network.state_dict(), "model.pt")
    model_dir.blob(f"{prefix}model.pt").upload_from_filename("model.pt")
    model_dir.blob(f"{prefix}metrics.json").upload_from_string(json.dumps({"val_accuracy": accuracy}))
dist.barrier()
dist.destroy_process_group()
