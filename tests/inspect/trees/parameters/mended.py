import argparse
import os
import pathlib

import hypertune

parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float, default=0.1)
parser.add_argument("--batch_size", type=lambda text: int(float(text)), default=32)
options = parser.parse_args()
folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1)
pathlib.Path(folder, "model.txt").write_text(str(options))
hypertune.HyperTune().report_hyperparameter_tuning_metric("accuracy", 0.5)
