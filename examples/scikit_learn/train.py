"""Train a support vector classifier on scikit-learn's digits; leave it, with its metrics, where Vertex AI says."""

import argparse
import json
import os

import hypertune
import joblib
from google.cloud import storage
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

parser = argparse.ArgumentParser()
parser.add_argument("--C", type=float, default=1.0)
parser.add_argument("--gamma", type=float, default=0.001)
args = parser.parse_args()

images, labels = load_digits(return_X_y=True)
train_images, test_images, train_labels, test_labels = train_test_split(images, labels, random_state=0)
model = SVC(C=args.C, gamma=args.gamma).fit(train_images, train_labels)
accuracy = model.score(test_images, test_labels)
print(f"accuracy {accuracy:.4f} with C={args.C} and gamma={args.gamma}")

# Reports to the study in a tuning; outside of one, the file is not read.
hypertune.HyperTune().report_hyperparameter_tuning_metric(
    hyperparameter_metric_tag="accuracy", metric_value=accuracy
)

bucket, _, prefix = os.environ["AIP_MODEL_DIR"].removeprefix("gs://").partition("/")
model_dir = storage.Client().bucket(bucket)
joblib.dump(model, "model.joblib")
model_dir.blob(f"{prefix}model.joblib").upload_from_filename("model.joblib")
model_dir.blob(f"{prefix}metrics.json").upload_from_string(json.dumps({"accuracy": accuracy}))
