import argparse
import json
import os

import torch
from accelerate import Accelerator


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    inputs = torch.linspace(-1, 1, 64).unsqueeze(1)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, 2 * inputs), batch_size=8)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    model, optimizer, data = accelerator.prepare(model, optimizer, data)
    for epoch in range(args.epochs):
        for x, y in data:
            loss = torch.nn.functional.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(
            json.dumps({"epoch": epoch, "loss": loss.item(), "processes": accelerator.num_processes})
        )
    if accelerator.is_main_process:
        folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
        os.makedirs(folder, exist_ok=True)
        torch.save(accelerator.unwrap_model(model).state_dict(), os.path.join(folder, "model.pt"))


if __name__ == "__main__":
    main()
