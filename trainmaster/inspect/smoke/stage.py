"""The directories and environment variables of a smoke run's replicas, as on Vertex AI.

Each replica has its own model directory, and its own working folder, in which the tree is linked: they show which
replica wrote what, and where.
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
BUCKET = "goog-smoke-run"
"""No bucket can have a name that begins so: https://cloud.google.com/storage/docs/buckets#naming (read 2026-11-26)."""
MAX_READ_BYTES = 4 << 20
"""How much of the end of a replica's output is read: a program may write any amount."""
NO_METRICS = {"timestamp", "trial", "global_step", "checkpoint_path"}
POOLS = {"chief": "workerpool0", "master": "workerpool0", "worker": "workerpool1"}


def inherited_variables(machine: Mapping[str, str], declared: Mapping[str, str]) -> dict[str, str]:
    """What a replica has of this `machine`, and of the image's and request's `declared` variables.

    The shell's choice of Keras is left out, and so are paths that a Dockerfile sets: they are the image's.
    """
    kept = {
        name: value for name, value in machine.items() if name not in REPLACED and not name.startswith(OURS)
    }
    set_by_job = {
        name: value for name, value in declared.items() if name not in OF_THE_MACHINE and "$" not in value
    }
    return kept | set_by_job


@dataclass(frozen=True, kw_only=True)
class SmokeStage:
    """`base` holds a folder per replica. They share checkpoints and logs, as on Vertex AI.

    `trial` is the id of a study's trial and `metric` the study's first, both empty without a study. `uses_uris`: outputs are gs:// URIs, below
    TRAINMASTER_GCS_ROOT; otherwise they are plain paths, which most programs can write to on this machine.
    """

    base: Path
    metric: str
    uses_uris: bool
    trial: str = ""

    @property
    def run(self) -> str:
        return f"{BUCKET}/run/{self.trial}".rstrip("/")

    def work(self, role: str) -> Path:
        """The folder that this replica starts in."""
        return self.base / role / "work"

    def output(self, role: str, stream: str) -> Path:
        return self.base / role / stream

    def in_run(self, role: str, folder: str) -> Path:
        return self.base / role / "gcs" / self.run / folder

    def variables(self, role: str, addresses: Mapping[str, str]) -> dict[str, str]:
        """The variables that the service sets for `role`; the chief's address is the first."""
        base = self.base / role
        root = f"gs://{self.run}" if self.uses_uris else str(base / "gcs" / self.run)
        variables = {
            "AIP_MODEL_DIR": f"{root}/model/",
            "AIP_CHECKPOINT_DIR": f"{root}/checkpoints/",
            "AIP_TENSORBOARD_LOG_DIR": f"{root}/logs/",
            "CLOUD_ML_JOB_ID": "1234567890123456789",
            "CLOUD_ML_PROJECT_ID": "123456789012",
            "TRAINMASTER_GCS_ROOT": str(base / "gcs"),
            "TMPDIR": str(base / "tmp"),
            **_cluster(role, addresses, self.trial),
        }
        if self.trial:
            variables |= {
                "CLOUD_ML_TRIAL_ID": self.trial,
                "CLOUD_ML_HP_METRIC_FILE": str(base / "metrics" / "output.metrics"),
                "CLOUD_ML_HP_METRIC_TAG": self.metric,
            }
        return variables

    def errors(self, role: str) -> str:
        """The end of what this replica wrote to standard error."""
        return _end_of(self.output(role, "stderr"))

    def model_files(self, role: str) -> tuple[str, ...]:
        """What this replica left in AIP_MODEL_DIR, relative to it."""
        return _files_below(self.in_run(role, "model"))

    def stray_files(self, role: str) -> tuple[str, ...]:
        """What it wrote into its working folder, but not behind the links to the tree, and what it left in TMPDIR."""
        temporary = (f"$TMPDIR/{path}" for path in _files_below(self.output(role, "tmp")))
        return (*_files_below(self.work(role)), *temporary)

    def reported_metrics(self, role: str) -> dict[str, str]:
        """The last value of each metric in this replica's metric file, by the name it is reported under."""
        path = self.base / role / "metrics" / "output.metrics"
        values: dict[str, str] = {}
        for line in _end_of(path).splitlines() if path.is_file() else ():
            try:
                report = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(report, dict):
                values |= {name: str(value) for name, value in report.items() if name not in NO_METRICS}
        return values


def _files_below(folder: Path) -> tuple[str, ...]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return tuple(sorted(str(path.relative_to(folder)) for path in files))


def _end_of(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - MAX_READ_BYTES))
        return file.read(MAX_READ_BYTES).decode(errors="replace")


@contextmanager
def stage_folders(
    root: Path, roles: Sequence[str], metric: str, *, uses_uris: bool, trial: str
) -> Iterator[SmokeStage]:
    """Directories that are there from the start, as in a bucket every path is; removed at the end.

    The entries of `root` are linked into the working folders.
    """
    with tempfile.TemporaryDirectory(prefix="trainmaster-inspect-", ignore_cleanup_errors=True) as made:
        stage = SmokeStage(base=Path(made), metric=metric, uses_uris=uses_uris, trial=trial)
        for role in roles:
            outputs = (stage.output(role, "tmp"), stage.output(role, "metrics"))
            for folder in (*outputs, stage.work(role), stage.in_run(role, "model")):
                folder.mkdir(parents=True)
            for entry in root.iterdir():
                (stage.work(role) / entry.name).symlink_to(entry)
            for shared in ("checkpoints", "logs"):
                if role == roles[0]:
                    stage.in_run(role, shared).mkdir()
                else:
                    stage.in_run(role, shared).symlink_to(stage.in_run(roles[0], shared))
        yield stage


def _cluster(role: str, addresses: Mapping[str, str], trial: str) -> dict[str, str]:
    """CLUSTER_SPEC always; TF_CONFIG where there is more than one replica."""
    pools = {name: name if "master" in addresses else POOLS[name] for name in addresses}
    rest = {"environment": "cloud"}
    task = {"index": 0, "trial": trial}
    cluster = {name: [address] for name, address in addresses.items()}
    by_pool = {pools[name]: listed for name, listed in cluster.items()}
    spec = {"cluster": by_pool, "task": {"type": pools[role], **task}, **rest, "job": {}}
    config = {"cluster": cluster, "task": {"type": role, **task}, **rest, "job": "{}"}
    alone = {"CLUSTER_SPEC": json.dumps(spec)}
    return alone if len(addresses) == 1 else {**alone, "TF_CONFIG": json.dumps(config)}
