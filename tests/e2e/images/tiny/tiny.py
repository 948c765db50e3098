"""Fits y = slope * x + intercept by gradient descent, reports as the project's trainer does, exports the line.

python tiny.py [--epochs 20] [--rate 0.5] [--tag loss] [--wait-for gs://BUCKET/NAME] [--burn] [--job-dir gs://…]

Reads AIP_MODEL_DIR, TF_CONFIG and TRAINMASTER_GCS_ROOT; needs nothing but Python. In a trial the chief
reports its loss under the tag, in the file format of cloudml-hypertune.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

SLOPE, INTERCEPT, NOISE = 3.0, -1.0, 0.01
EXAMPLES = 200
PRIMARY = ("chief-0", "master-0")  # the second as AI Platform Training named it


def main() -> None:
    arguments = parsed_arguments()
    started = time.monotonic()
    replica = replica_name()
    say("INFO", "training begins", event="train_started", replica=replica, epochs=arguments.epochs)
    if arguments.wait_for:
        wait_for(path_of(arguments.wait_for), burn=arguments.burn)
    slope, intercept, loss = fit(points(), arguments, replica=replica)
    if replica in PRIMARY:
        metrics = {"loss": loss, "accuracy": 1.0 - min(1.0, loss)}
        export(
            {"slope": slope, "intercept": intercept}, metrics, arguments.epochs, time.monotonic() - started
        )


def parsed_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rate", type=float, default=0.5)
    parser.add_argument("--tag", default="loss")
    parser.add_argument("--wait-for", default="")
    parser.add_argument("--burn", action="store_true", help="keep a core busy while it waits")
    parser.add_argument(
        "--job-dir", default="", help="what AI Platform Training gave every program; not read"
    )
    return parser.parse_args()


def replica_name() -> str:
    task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"type": "chief", "index": 0})
    return f"{task['type']}-{task['index']}"


def points() -> list[tuple[float, float]]:
    noise = random.Random(7)
    xs = [noise.uniform(-1, 1) for _ in range(EXAMPLES)]
    return [(x, SLOPE * x + INTERCEPT + noise.gauss(0, NOISE)) for x in xs]


def fit(
    data: list[tuple[float, float]], arguments: argparse.Namespace, *, replica: str
) -> tuple[float, float, float]:
    slope = intercept = loss = 0.0
    epochs, rate = arguments.epochs, arguments.rate
    for epoch in range(1, epochs + 1):
        errors = [(slope * x + intercept - y, x) for x, y in data]
        loss = sum(error * error for error, _ in errors) / len(data)
        slope -= rate * 2 * sum(error * x for error, x in errors) / len(data)
        intercept -= rate * 2 * sum(error for error, _ in errors) / len(data)
        say(
            "INFO", f"epoch {epoch}", event="epoch_finished", replica=replica, epoch=epoch, epochs=epochs,
            metrics={"loss": loss},
        )  # fmt: skip
        if replica in PRIMARY:
            report(arguments.tag, loss, step=epoch)
    return slope, intercept, loss


def report(tag: str, value: float, *, step: int) -> None:
    path = os.environ.get("CLOUD_ML_HP_METRIC_FILE")
    if path is None:
        return
    trial = os.environ["CLOUD_ML_TRIAL_ID"]
    line = {tag: str(value), "global_step": str(step), "timestamp": time.time(), "trial": trial}
    with Path(path).open("a") as file:
        file.write(json.dumps(line) + "\n")


def export(model: dict[str, float], metrics: dict[str, float], epochs: int, seconds: float) -> None:
    uri = os.environ["AIP_MODEL_DIR"]
    directory = path_of(uri)
    directory.mkdir(parents=True, exist_ok=True)
    content = json.dumps(model).encode()
    (directory / "model.json").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    manifest = {
        "schema": "model_export.v1",
        "model_uri": uri,
        "created_at": datetime.now(UTC).isoformat(),
        "files": [{"path": "model.json", "size_bytes": len(content), "sha256": digest}],
        "metrics": metrics,
        "dataset": {"name": "line", "version": "1.0.0", "train_split": "train", "evaluation_split": None},
        "frameworks": {"python": platform.python_version()},
        "training": {
            "epochs": epochs, "global_batch_size": EXAMPLES, "replicas_in_sync": 1, "strategy": "none",
            "seconds": seconds,
        },
    }  # fmt: skip
    (directory / "export.json").write_text(json.dumps(manifest))
    say(
        "NOTICE", "model exported", event="model_exported", model_path=uri,
        manifest_path=f"{uri}export.json", metrics=metrics,
    )  # fmt: skip


def wait_for(path: Path, *, burn: bool) -> None:
    while not path.exists():
        if not burn:
            time.sleep(0.05)
        until = time.monotonic() + 0.1
        while burn and time.monotonic() < until:
            pass
        if burn:
            say("INFO", "busy", event="busy", at=time.time(), used_s=time.process_time())


def path_of(uri: str) -> Path:
    return Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs")) / uri.removeprefix("gs://")


def say(severity: str, message: str, **fields: object) -> None:
    sys.stdout.write(json.dumps({"severity": severity, "message": message, **fields}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
