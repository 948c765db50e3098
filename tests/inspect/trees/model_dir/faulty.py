import argparse
import pathlib

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--output", default="/tmp/model")
options = parser.parse_args()
checkpoint = pathlib.Path(options.output) / "checkpoint.pt"
model = torch.nn.Linear(2, 1)
if checkpoint.exists():
    model.load_state_dict(torch.load(checkpoint))
model(torch.zeros(4, 2)).sum().backward()
model.save(options.output)  # here
