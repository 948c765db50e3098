"""The files for gcloud to copy are sound requests, the API takes them, and the trainer takes their arguments."""

from pathlib import Path

import pytest
import yaml

from tests.core.parsed import sound_request
from tests.judges.jobs import job_faults
from trainer.task import command_from
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.request import Request

ROOT = Path(__file__).resolve().parents[4]
FILES = sorted((ROOT / "examples" / "vertex").glob("*.yaml"))


def read(path: Path, name: str | None = None) -> Request:
    return sound_request(path.read_text(), name=name)


def test_there_is_a_file_of_each_kind() -> None:
    assert [path.name for path in FILES] == ["custom-job.yaml", "hp-tuning-job.yaml"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_file_is_sound_and_has_flags_that_the_trainer_takes(path: Path) -> None:
    request = read(path, model_name_from(path.stem))
    assert not request.warnings
    for pool in request.spec.cluster.pools:
        assert pool is not None
        command_from(list(pool.program.args))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_api_takes_the_file(path: Path) -> None:
    kind = JobKind.TUNING if "tuning" in path.stem else JobKind.CUSTOM
    assert job_faults(kind, yaml.safe_load(path.read_text()), spec_alone=kind is JobKind.CUSTOM) == []


def test_the_tuning_is_that_of_our_own_example() -> None:
    ours, theirs = (read(ROOT / "examples" / name) for name in ("tuning.yaml", "vertex/hp-tuning-job.yaml"))
    assert theirs.spec == ours.spec
