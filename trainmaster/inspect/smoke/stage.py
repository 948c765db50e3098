"""The directories and environment variables of a smoke run's replicas, as on Vertex AI.

Each replica has its own model directory, which shows which replica wrote what.
Source: "Distributed training" and "Code requirements" of the Vertex AI guide
(https://cloud.google.com/vertex-ai/docs/training/distributed-training, …/code-requirements).
"""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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
TRIAL = "1"
MAX_READ_BYTES = 4 << 20
"""How much of the end of a replica's output is read: a program may write any amount."""
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


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`base` holds a folder per replica. They share checkpoints and logs, as on Vertex AI.

    `uses_uris`: outputs are gs:// URIs, below TRAINMASTER_GCS_ROOT; otherwise they are plain paths, which a
    program that does not use that variable can write to on this machine.
    """

    base: Path
    request: Request | None
    uses_uris: bool

    @property
    def is_trial(self) -> bool:
        return self.request is not None and self.request.is_tuning

    @property
    def run(self) -> str:
        return f"inspect/run/{TRIAL}" if self.is_trial else "inspect/run"

    def output(self, role: str, stream: str) -> Path:
        return self.base / role / stream

    def in_run(self, role: str, folder: str) -> Path:
        return self.base / role / "gcs" / self.run / folder

    def variables(self, role: str, addresses: Mapping[str, str]) -> dict[str, str]:
        """The variables that the service sets for `role`; the chief's address is the first."""
        own = self.base / role
        root = f"gs://{self.run}" if self.uses_uris else str(own / "gcs" / self.run)
        variables = {
            "AIP_MODEL_DIR": f"{root}/model/",
            "AIP_CHECKPOINT_DIR": f"{root}/checkpoints/",
            "AIP_TENSORBOARD_LOG_DIR": f"{root}/logs/",
            "CLOUD_ML_JOB_ID": "1234567890123456789",
            "CLOUD_ML_PROJECT_ID": "123456789012",
            "TRAINMASTER_GCS_ROOT": str(own / "gcs"),
            "TMPDIR": str(own / "tmp"),
            **_cluster(role, addresses, TRIAL if self.is_trial else ""),
        }
        if self.request is not None and self.is_trial:
            variables |= {
                "CLOUD_ML_TRIAL_ID": TRIAL,
                "CLOUD_ML_HP_METRIC_FILE": str(own / "metrics" / "output.metrics"),
                "CLOUD_ML_HP_METRIC_TAG": self.request.metrics[0] if self.request.metrics else "",
            }
        return variables

    def errors(self, role: str) -> str:
        """The end of what this replica wrote to standard error."""
        return _end_of(self.output(role, "stderr"))

    def model_files(self, role: str) -> tuple[str, ...]:
        """What this replica left in AIP_MODEL_DIR, relative to it."""
        model = self.in_run(role, "model")
        return tuple(sorted(str(path.relative_to(model)) for path in model.rglob("*") if path.is_file()))

    def reported(self, role: str) -> frozenset[str]:
        """The metrics in this replica's metric file, by the names they are reported under."""
        path = self.base / role / "metrics" / "output.metrics"
        found: set[str] = set()
        for line in _end_of(path).splitlines() if path.is_file() else ():
            try:
                report = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(report, dict):
                found |= report.keys() - {"timestamp", "trial", "global_step", "checkpoint_path"}
        return frozenset(found)


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_READ_BYTES))
        return file.read(MAX_READ_BYTES).decode(errors="replace")


@contextmanager
def staged(roles: Sequence[str], request: Request | None, *, uses_uris: bool) -> Iterator[Stage]:
    """Directories that are there from the start, as in a bucket every path is; removed at the end."""
    with tempfile.TemporaryDirectory(prefix="trainmaster-inspect-", ignore_cleanup_errors=True) as made:
        stage = Stage(base=Path(made), request=request, uses_uris=uses_uris)
        for role in roles:
            for folder in (
                stage.output(role, "tmp"),
                stage.output(role, "metrics"),
                stage.in_run(role, "model"),
            ):
                folder.mkdir(parents=True)
            for shared in ("checkpoints", "logs"):
                if role == roles[0]:
                    stage.in_run(role, shared).mkdir()
                else:
                    stage.in_run(role, shared).symlink_to(stage.in_run(roles[0], shared))
        yield stage


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
