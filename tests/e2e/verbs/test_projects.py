"""Projects of the usual kinds, each submitted unchanged: `tests/e2e/projects`."""

import os
import shutil
from pathlib import Path

import pytest

from tests.e2e.project import Project

from .conftest import PROJECT, Trainmaster

PROJECTS = Path(__file__).parents[1] / "projects"
REQUEST = "model_name: {}\nscript: {}\nargs: [{}]\ncluster: {{chief: {{machine: n1-standard-4}}}}\n"
OF_EACH = {
    "src_layout": ("{module: digits.train, extras: [config], groups: [train]}", "--epochs=4", "loss: 0.25\n"),
    "jobs_root": ("{root: ., file: jobs/train.py}", "", "scale: 0.5\n"),
    "locked": ("{root: ., file: app/train.py}", "", "pyyaml: 6.0.3\n"),
    "header": ("{root: ., file: train.py}", "", "header: true\n"),
}


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    return shutil.copytree(PROJECTS, tmp_path / "projects")


@pytest.mark.slow(seconds=30)
def test_a_project_finds_its_own_modules_and_the_packages_that_it_names(
    projects: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    for name, (script, args, _) in OF_EACH.items():
        (projects / name / f"{name}.yaml").write_text(REQUEST.format(name.replace("_", "-"), script, args))
    files = [f"{name}/{name}.yaml" for name in OF_EACH]
    done = trainmaster("submit", *files, "--wait", "--context", f"local:{stack.state}", cwd=projects)
    assert done.status == 0, done.err
    for source in (
        "pyproject.toml with the extras config",
        "requirements.txt",
        "uv.lock",
        "the header of train.py",
    ):
        assert f"Installs the packages of {source}" in done.err
    for run_id, (_, _, model) in zip(done.out.split(), OF_EACH.values(), strict=True):
        uri = stack.finished_record(run_id)["model"]["uri"].removeprefix(f"gs://{PROJECT}-models/")
        assert stack.storage.bucket(f"{PROJECT}-models").blob(f"{uri}model.yaml").download_as_text() == model


@pytest.mark.slow(seconds=60)
def test_a_script_for_torchrun_trains_one_model_on_two_replicas(
    projects: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    """Some minutes where PyTorch must be installed: tests/stack/jobs/test_scripts.py shows the launcher without it."""
    if not os.environ.get("TRAINMASTER_TEST_TORCHRUN"):
        pytest.skip("trains only with TRAINMASTER_TEST_TORCHRUN=1")
    options = ("--launcher", "torchrun", "--workers", "1", "--name", "ddp", "--logs")
    script = ("--script", str(projects / "ddp" / "train.py"))
    done = trainmaster("submit", *script, *options, "--context", f"local:{stack.state}", cwd=projects)
    assert done.status == 0, done.out + done.err
    ends = {
        line.partition(" ends with ")[0]: line.rpartition(" ")[2]
        for line in done.out.splitlines()
        if " ends with " in line
    }
    assert ends.keys() == {"workerpool0-0 | rank 0 of 2", "workerpool1-0 | rank 1 of 2"}
    assert len(set(ends.values())) == 1
    assert stack.finished_record(done.out.split()[0])["model"]["uri"]
