"""The variables of one replica, as Vertex AI sets them.

Source: "Distributed training" and "Code requirements" of the Vertex AI guide
(https://cloud.google.com/vertex-ai/docs/training/distributed-training, …/code-requirements).
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainmaster.inspect.request import Request

OURS = ("AIP_", "CLOUD_ML_")
REPLACED = {
    "TF_CONFIG",
    "CLUSTER_SPEC",
    "TRAINMASTER_GCS_ROOT",
    "TMPDIR",
    "RANK",
    "WORLD_SIZE",
    "MASTER_ADDR",
    "TF_USE_LEGACY_KERAS",
}
OF_THE_MACHINE = {"PATH", "HOME", "LD_LIBRARY_PATH", "PYTHONPATH", "TMPDIR", "VIRTUAL_ENV", "USER"}
BUCKET, RUN, TRIAL = "inspect", "run", "1"
POOLS = {"chief": "workerpool0", "master": "workerpool0", "worker": "workerpool1"}


def inherited(own: Mapping[str, str], declared: Mapping[str, str]) -> dict[str, str]:
    """What a replica has of this machine, `own`, and of the image's and request's `declared` variables.

    The shell's choice of Keras is left out, and so are paths that a Dockerfile sets: they are the image's.
    """
    kept = {name: value for name, value in own.items() if name not in REPLACED and not name.startswith(OURS)}
    set_by_job = {
        name: value for name, value in declared.items() if name not in OF_THE_MACHINE and "$" not in value
    }
    return kept | set_by_job


def of_replica(
    role: str, addresses: Mapping[str, str], base: Path, *, request: Request | None, uses_uris: bool
) -> dict[str, str]:
    """The variables that the service sets for `role`, whose outputs lie below `base`.

    `uses_uris`: outputs are named by gs:// URIs, below TRAINMASTER_GCS_ROOT; else by plain paths, which a
    program that knows nothing of that variable can write to on this machine.
    """
    is_trial = request is not None and request.is_tuning
    run = f"{BUCKET}/{RUN}/{TRIAL}" if is_trial else f"{BUCKET}/{RUN}"
    root = f"gs://{run}" if uses_uris else str(base / "gcs" / run)
    variables = {
        "AIP_MODEL_DIR": f"{root}/model/",
        "AIP_CHECKPOINT_DIR": f"{root}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{root}/logs/",
        "CLOUD_ML_JOB_ID": "1234567890123456789",
        "CLOUD_ML_PROJECT_ID": "123456789012",
        "TRAINMASTER_GCS_ROOT": str(base / "gcs"),
        "TMPDIR": str(base / "tmp"),
        **_cluster(role, addresses, TRIAL if is_trial else ""),
    }
    if request is not None and is_trial:
        variables |= {
            "CLOUD_ML_TRIAL_ID": TRIAL,
            "CLOUD_ML_HP_METRIC_FILE": str(base / "metrics" / "output.metrics"),
            "CLOUD_ML_HP_METRIC_TAG": request.metrics[0] if request.metrics else "",
        }
    return variables


def _cluster(role: str, addresses: Mapping[str, str], trial: str) -> dict[str, str]:
    """CLUSTER_SPEC always; TF_CONFIG where there is more than one replica."""
    is_legacy = "master" in addresses
    names = {each: each if is_legacy else POOLS[each] for each in addresses}
    spec = _document(
        {names[each]: [address] for each, address in addresses.items()}, names[role], trial, job={}
    )
    if len(addresses) == 1:
        return {"CLUSTER_SPEC": spec}
    config = _document({each: [address] for each, address in addresses.items()}, role, trial, job="{}")
    return {"CLUSTER_SPEC": spec, "TF_CONFIG": config}


def _document(cluster: Mapping[str, Sequence[str]], role: str, trial: str, *, job: object) -> str:
    task = {"type": role, "index": 0, "trial": trial}
    return json.dumps({"cluster": cluster, "task": task, "environment": "cloud", "job": job})


def trial_flags(request: Request | None) -> list[str]:
    """What the service appends to a trial's command line: one legal value of each parameter."""
    return [] if request is None else [f"--{each.name}={each.sample}" for each in request.parameters]
