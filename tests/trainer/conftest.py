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
    """Starts replicas in `tree`, with the models bucket in a separate folder; `run_dir` is a run's place there."""

    root: Path
    data_dir: Path
    tree: Path = ROOT
    started: list[Replica] = field(default_factory=list)

    def run_dir(self, run: str = "run-1") -> Path:
        return self.root / "buckets" / "models" / run

    def start_replica(self, *arguments: str, environment: Mapping[str, str], run: str = "run-1") -> Replica:
        self.run_dir().parent.mkdir(parents=True, exist_ok=True)
        replica = start_replica(
            f"--data_dir={self.data_dir}",
            "--weights=random",
            *arguments,
            cwd=self.tree,
            files=self.root / f"{run}-{len(self.started)}",
            environment=places(run, self.root / "buckets") | dict(environment),
        )
        self.started.append(replica)
        return replica

    def reap(self) -> None:
        reap(self.started)


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


@pytest.fixture
def own_runner(tmp_path: Path, horses_dir: Path) -> Iterator[Runner]:
    made = Runner(root=tmp_path, data_dir=horses_dir)
    yield made
    made.reap()


def reap(replicas: Iterable[Replica]) -> None:
    for replica in replicas:
        replica.process.kill()
        replica.process.wait()
