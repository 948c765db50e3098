"""Real trainer processes on a small generated data set; every process started here is reaped."""

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.datasets import FIGURES, LEAVES, written_once
from tests.trainer import warm
from tests.trainer.warm import WarmProcess
from trainstack.process.ports import free_ports

ROOT = Path(__file__).resolve().parents[2]
ENDS_WITHIN_S = 400
ARGUMENTS = (
    "--weights=random",
    "--image_size=32",
    "--batch_size=4",
    "--steps_per_epoch=3",
    "--learning_rate=0.001",
)


@dataclass(kw_only=True)
class Replica:
    """A trainer process; its standard output is a file of JSON lines."""

    process: WarmProcess
    out: Path
    err: Path
    scratch: Path

    def events(self, name: str) -> list[dict[str, Any]]:
        lines = self.out.read_text().splitlines(keepends=True)
        # The last one may be being written.
        whole = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in whole if event["event"] == name]

    def wait(self) -> int:
        return self.process.wait(ENDS_WITHIN_S)

    def wait_until(self, reached: Callable[["Replica"], object]) -> None:
        deadline = time.monotonic() + ENDS_WITHIN_S
        while not reached(self):
            assert self.process.poll() is None, self.err.read_text()[-3000:]
            assert time.monotonic() < deadline, self.out.read_text()
            time.sleep(0.1)


def start_replica(
    *arguments: str,
    cwd: Path,
    files: Path,
    environment: Mapping[str, str] | None = None,
    module: str = "trainer.task",
) -> Replica:
    """`python -m` this module in `cwd`; output, errors and scratch are `files` with .out, .err and .tmp."""
    out, err, scratch = (files.with_name(f"{files.name}.{end}") for end in ("out", "err", "tmp"))
    scratch.mkdir()
    process = WarmProcess(
        module,
        *arguments,
        cwd=cwd,
        environment={**os.environ, "TMPDIR": str(scratch), **(environment or {})},
        out=out,
        err=err,
    )
    return Replica(process=process, out=out, err=err, scratch=scratch)


def places(prefix: str, buckets: Path) -> dict[str, str]:
    """Where a run finds its directories: below gs://models/`prefix`, of buckets in this folder."""
    folders = {"MODEL": "model", "CHECKPOINT": "checkpoints", "TENSORBOARD_LOG": "logs"}
    found = {f"AIP_{name}_DIR": f"gs://models/{prefix}/{folder}/" for name, folder in folders.items()}
    return {**found, "TRAINMASTER_GCS_ROOT": str(buckets)}


def two_replicas() -> list[dict[str, Any]]:
    """TF_CONFIG of a chief and of a worker, on free ports."""
    chief, worker = (f"127.0.0.1:{port}" for port in free_ports(2))
    cluster = {"chief": [chief], "worker": [worker]}
    return [{"cluster": cluster, "task": {"type": role, "index": 0}} for role in ("chief", "worker")]


def run_to_end(
    module: str, *arguments: str, folder: Path, cwd: Path = ROOT, environment: Mapping[str, str] | None = None
) -> str:
    """What `python -m` this module prints; it must succeed. Output and errors are files in `folder`."""
    out, err = folder / "out", folder / "err"
    process = WarmProcess(
        module, *arguments, cwd=cwd, environment={**os.environ, **(environment or {})}, out=out, err=err
    )
    assert process.wait(ENDS_WITHIN_S) == 0, err.read_text()[-3000:]
    return out.read_text()


def cases_of(module: str, folders: pytest.TempPathFactory) -> dict[str, Any]:
    """What `python -m` this module writes to cases.json, by case."""
    folder = folders.mktemp("cases")
    run_to_end(module, folder=folder, cwd=folder, environment={"PYTHONPATH": str(ROOT)})
    found: dict[str, Any] = json.loads((folder / "cases.json").read_text())
    return found


@dataclass(kw_only=True)
class Runner:
    """Starts replicas with a separate folder as their models bucket."""

    root: Path
    data_dir: Path
    started: list[Replica] = field(default_factory=list)

    @property
    def run_dir(self) -> Path:
        return self.root / "buckets" / "models" / "run-1"

    def start(self, *arguments: str, environment: dict[str, str], module: str = "trainer.task") -> Replica:
        self.run_dir.parent.mkdir(parents=True, exist_ok=True)
        replica = start_replica(
            f"--data_dir={self.data_dir}",
            *ARGUMENTS,
            *arguments,
            cwd=ROOT,
            files=self.root / str(len(self.started)),
            environment=places("run-1", self.root / "buckets") | environment,
            module=module,
        )
        self.started.append(replica)
        return replica

    def start_cluster(self, *arguments: str, environment: dict[str, str]) -> list[Replica]:
        """A chief and a worker, both with `environment`."""
        return [
            self.start(*arguments, environment=environment | {"TF_CONFIG": json.dumps(config)})
            for config in two_replicas()
        ]


@pytest.fixture(scope="session", autouse=True)
def loaded_packages() -> Iterator[None]:
    """What the first replica loads serves all that follow, and ends with the session."""
    yield
    warm.stop()


@pytest.fixture(scope="session")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's data set, 60 small images: 39 train, 9 validation, 12 test."""
    return written_once(tmp_path_factory, "leaves", write_demo_dataset)


@pytest.fixture(scope="session")
def horses_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data set of the demo's tuning, 24 images: 18 train, 6 test."""
    return written_once(tmp_path_factory, "figures", lambda path: write_demo_dataset(path, *FIGURES))


def write_demo_dataset(path: Path, *options: str) -> None:
    run_to_end("demo_dataset", f"--data_dir={path}", *(options or LEAVES), folder=path, cwd=ROOT / "examples")


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Runner]:
    made = Runner(root=tmp_path_factory.mktemp("run"), data_dir=data_dir)
    yield made
    reap(made.started)


@pytest.fixture
def own_runner(tmp_path: Path, horses_dir: Path) -> Iterator[Runner]:
    made = Runner(root=tmp_path, data_dir=horses_dir)
    yield made
    reap(made.started)


def reap(replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        replica.process.kill()
        replica.process.wait()
