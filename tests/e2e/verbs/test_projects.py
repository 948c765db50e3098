"""Projects of the usual kinds, each submitted unchanged: `tests/e2e/projects`."""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.e2e.project import Project
from tests.e2e.reader import DEADLINE_S
from tests.web.consoles import console_over
from trainmaster.client.context import context_of_state

from .conftest import PROJECT, Trainmaster

PROJECTS = Path(__file__).parents[1] / "projects"
REQUEST = "model_name: {}\nscript: {}\nargs: [{}]\ncluster: {{chief: {{machine: n1-standard-4}}}}\n"
OF_EACH = {
    "src_layout": (
        "{module: digits.train, extras: [config], groups: [train]}", "--epochs=4", "loss: 0.25\n", "loss",
    ),
    "jobs_root": ("{root: ., file: jobs/train.py}", "", "scale: 0.5\n", "train_loss"),
    "locked": ("{root: ., file: app/train.py}", "", "pyyaml: 6.0.3\n", "loss"),
    "header": ("{root: ., file: train.py}", "", "header: true\n", "val_accuracy"),
}  # fmt: skip
"""The script of each project, its arguments, the model that it leaves, and a curve that the run's page draws."""
HF = (
    "--output_dir=/tmp/checkpoints",
    "--num_train_epochs=2",
    "--logging_steps=2",
    "--report_to=none",
    "--use_cpu",
)
WITH_CURVES = {
    "xgboost": ("train.py", (), (f"--data=/gcs/{PROJECT}-data/table.csv",), "train-logloss"),
    "hydra": ("train.py", (), ("model=quick", "epochs=4"), "loss"),
    "accelerate": ("train.py", ("--launcher", "accelerate"), ("--epochs=3",), "loss"),
    "lightning": ("train.py", (), ("--epochs=4",), "train_loss"),
    "hf_trainer": ("finetune.py", (), HF, "loss"),
}
"""The script of each project, options of the command, its arguments, and a curve that the run's page draws."""
WITH_TORCH = ("accelerate", "lightning", "hf_trainer")


def skip_without_torch() -> None:
    """PyTorch takes gigabytes where its registry has only the build for CUDA."""
    if not os.environ.get("TRAINMASTER_TEST_TORCH"):
        pytest.skip("trains with PyTorch only with TRAINMASTER_TEST_TORCH=1")


def curves_of(run_id: str, stack: Project) -> list[str]:
    """The names of the curves on the run's page."""
    context = context_of_state(stack.state)
    assert context is not None
    with console_over(lambda: context) as console:
        page = console.get(f"/runs/{run_id}").text
    return re.findall(r"<figcaption>([\w-]+)", page)


@pytest.fixture
def projects(tmp_path: Path) -> Path:
    return shutil.copytree(PROJECTS, tmp_path / "projects")


@pytest.mark.slow(seconds=30)
def test_a_project_finds_its_own_modules_and_the_packages_that_it_names(
    projects: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    for name, (script, args, *_) in OF_EACH.items():
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
    models = stack.storage.bucket(f"{PROJECT}-models")
    for run_id, (*_, model, curve) in zip(done.out.split(), OF_EACH.values(), strict=True):
        uri = stack.finished_record(run_id)["model"]["uri"].removeprefix(f"gs://{PROJECT}-models/")
        assert models.blob(f"{uri}model.yaml").download_as_text() == model
        installed = models.blob(f"{uri.removesuffix('model/')}installed.txt").download_as_text()
        assert "pyyaml==" in installed.lower()
        assert curve in curves_of(run_id, stack)


@pytest.mark.slow(seconds=60)
def test_a_script_for_torchrun_trains_one_model_on_two_replicas(
    projects: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    """Some minutes where PyTorch must be installed: tests/stack/jobs/test_scripts.py shows the launcher without it."""
    skip_without_torch()
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
    run_id = done.out.split()[0]
    assert stack.finished_record(run_id)["model"]["uri"]
    assert "Loss" in curves_of(run_id, stack)


@pytest.mark.slow(seconds=60)
@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("name", WITH_CURVES)
def test_a_project_of_a_framework_has_its_curve_and_its_model_on_record(
    name: str, projects: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    script, options, args, curve = WITH_CURVES[name]
    if name in WITH_TORCH:
        skip_without_torch()
    data = "\n".join(["a,b,label", *(f"{one},{one % 3},{int(one > 20)}" for one in range(40))])
    stack.storage.bucket(f"{PROJECT}-data").blob("table.csv").upload_from_string(data)
    words = ("--script", str(projects / name / script), "--name", name.replace("_", "-"), *options, "--wait")
    done = trainmaster("submit", *words, "--context", f"local:{stack.state}", "--", *args, cwd=projects)
    assert done.status == 0, done.err
    record = stack.finished_record(done.out.split()[0])
    assert record["model"]["uri"]
    assert curve in curves_of(record["run_id"], stack)
