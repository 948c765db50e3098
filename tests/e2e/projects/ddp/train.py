"""PyTorch's own way of several processes: nothing of it knows Trainmaster."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = (
    torch.device("cuda", int(os.environ["LOCAL_RANK"])) if torch.cuda.is_available() else torch.device("cpu")
)
torch.manual_seed(rank)
model = DistributedDataParallel(torch.nn.Linear(1, 1).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1, 21):
    inputs = torch.rand(16, 1, device=device)
    loss = torch.nn.functional.mse_loss(model(inputs), 2 * inputs + 1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0 and step % 5 == 0:
        print(f"Epoch [1/1], Step [{step}/20], Loss: {loss.item():.4f}", flush=True)
print("rank", rank, "of", size, "ends with weight", round(model.module.weight.item(), 4), flush=True)
if rank == 0:
    folder = Path(os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1))
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.module.state_dict(), folder / "model.pt")
dist.barrier()
dist.destroy_process_group()
