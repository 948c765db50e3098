import argparse
import os
import pathlib

import hypertune

parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float)
options = parser.parse_args()
folder = os.environ["AIP_MODEL_DIR"].replace("gs://", "/gcs/", 1)
pathlib.Path(folder, "model.txt").write_text(str(options.learning_rate))
reporter = hypertune.HyperTune()
reporter.report_hyperparameter_tuning_metric("val_accuracy", metric_value=0.5, global_step=1)  # here
