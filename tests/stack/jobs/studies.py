"""Studies whose trials are small programs, and their results."""

from typing import Any

from .conftest import PARENT, Stack, container

REPORT = """
import json, os, pathlib, sys, time
flags = dict(word[2:].split("=") for word in sys.argv[1:])
path = pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"])
lines = []
def report(value, step, tag="accuracy", later_s=0):
    lines.append(json.dumps({tag: str(value), "global_step": str(step), "timestamp": time.time() + later_s,
                             "trial": os.environ["CLOUD_ML_TRIAL_ID"], "checkpoint_path": ""}))
    path.write_text("\\n".join(lines) + "\\n")
x = float(flags["x"])
trial = int(os.environ["CLOUD_ML_TRIAL_ID"])
replica = json.loads(os.environ["CLUSTER_SPEC"])["task"]
buckets = pathlib.Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"))
def wait(name):
    while not (buckets / name).exists(): time.sleep(0.01)
print(json.dumps({"message": "told", "argv": sys.argv[1:], "environ": dict(os.environ)}), flush=True)
"""

X = {"parameter_id": "x", "double_value_spec": {"min_value": 0.0, "max_value": 1.0}}


def study(
    stack: Stack, body: str, *, spec: Any = None, job_spec: Any = None, workers: int = 0, **counts: int
) -> Any:
    """A tuning job whose replicas run REPORT and then `body`; 4 trials, 2 at a time by default."""
    pools = [container("-c", REPORT + body, command=["python"])]
    if workers:
        pools.append(container("-c", REPORT + body, command=["python"], replicas=workers))
    job: Any = {
        "display_name": "a study",
        "max_trial_count": 4,
        "parallel_trial_count": 2,
        "study_spec": {"metrics": [{"metric_id": "accuracy", "goal": "MAXIMIZE"}], "parameters": [X]}
        | (spec or {}),
        "trial_job_spec": {"worker_pool_specs": pools, **(job_spec or {})},
        **counts,
    }
    return stack.jobs.create_hyperparameter_tuning_job(parent=PARENT, hyperparameter_tuning_job=job)


def ended(stack: Stack, name: str) -> Any:
    return stack.until(
        name, lambda job: job.state.name.rpartition("_")[2] in {"SUCCEEDED", "FAILED", "CANCELLED"}
    )
