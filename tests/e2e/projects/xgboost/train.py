import argparse
import os

import numpy as np
import xgboost as xgb

parser = argparse.ArgumentParser()
parser.add_argument("--data", required=True)
parser.add_argument("--rounds", type=int, default=8)
args = parser.parse_args()

table = np.loadtxt(args.data, delimiter=",", skiprows=1)
matrix = xgb.DMatrix(table[:, :-1], label=table[:, -1])
booster = xgb.train(
    {"objective": "binary:logistic", "max_depth": 2},
    matrix,
    num_boost_round=args.rounds,
    evals=[(matrix, "train")],
)
folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/")
os.makedirs(folder, exist_ok=True)
booster.save_model(os.path.join(folder, "model.ubj"))
