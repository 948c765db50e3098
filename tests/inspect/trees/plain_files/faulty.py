import argparse
import os
import pathlib

import joblib
from sklearn.linear_model import LogisticRegression


def save(model: LogisticRegression, folder: str) -> None:
    os.makedirs(folder, exist_ok=True)  # here
    joblib.dump(model, os.path.join(folder, "model.joblib"))
    with open(f"{folder}/features.txt", "w") as file:
        file.write("a")
    (pathlib.Path(folder) / "classes.txt").write_text("b")


parser = argparse.ArgumentParser()
parser.add_argument("--model-dir", default=os.environ["AIP_MODEL_DIR"])
options = parser.parse_args()
save(LogisticRegression().fit([[0], [1]], [0, 1]), options.model_dir)
