"""The wheel in an empty environment, used in an empty folder outside the checkout."""

import os
import re
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from uv import find_uv_bin

from tests.environments import compile_packages, run_uv
from tests.processes import run_to_end
from trainmaster.version import VERSION
from trainstack.jobs.images.indexes import settings_of_uv

pytestmark = [pytest.mark.slow(seconds=80), pytest.mark.timeout(600)]

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "installed"
IMAGE = f"us-central1-docker.pkg.dev/{PROJECT}/trainmaster/own"
PROGRAM = """
from pathlib import Path
from typing import assert_type

from trainmaster import RequestRefused, RunFailed, connect

with connect("local") as tm:
    try:
        run = tm.submit(script="train.py", args=["--epochs=3"], set={"priority": 60}).wait(timeout=60)
        assert_type(run.metrics, dict[str, float])
        assert_type(run.model.download("model"), Path)
        assert_type(tm.champion("own").value, float)
        assert_type([line.text for line in run.log(tail=10)], list[str])
    except RequestRefused as refused:
        assert_type(refused.faults[0].problem, str)
    except RunFailed as failed:
        assert_type(failed.run.id, str)
    tm.submit(gpus="L4:1")  # type: ignore[call-arg]
    tm.runs(limit="all")  # type: ignore[arg-type]
"""
NOT_OURS = ("trainer", "functions", "schemas", "examples", "deploy", "tensorflow")


@dataclass(frozen=True, kw_only=True)
class Installed:
    """The command in its own environment, run in a folder that was empty."""

    environment: Path
    folder: Path

    def command(self, *words: str) -> list[str]:
        return [str(self.environment / "bin" / "trainmaster"), *words]

    def run(
        self, *words: str, status: int = 0, cwd: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        done = run_to_end(
            self.command(*words),
            cwd=cwd or self.folder,
            env={**clean(), "TRAINMASTER_CONFIG": str(self.environment / "settings")},
            timeout=120,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done


def clean() -> dict[str, str]:
    home, settings = os.environ.get("HOME", "/"), os.environ["TRAINMASTER_CONFIG"]
    return {"PATH": "/usr/bin:/bin", "HOME": home, "LANG": "C.UTF-8", "TRAINMASTER_CONFIG": settings}


def pythons() -> dict[str, str]:
    """Each supported Python that this machine has: that of these tests, others on the path or of pyenv; else ""."""
    home = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = {
        f"3.{minor}": [
            *map(str, sorted(home.glob(f"3.{minor}.*/bin/python"))),
            shutil.which(f"python3.{minor}"),
        ]
        for minor in range(11, 15)
    }
    found[f"3.{sys.version_info.minor}"] = [sys.executable]
    return {version: next(filter(None, paths), "") for version, paths in found.items()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source distribution, as an index would build it; the tools are those of this environment."""
    dist = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(dist)]
    subprocess.run([*build, "-t", "sdist"], cwd=ROOT, check=True, capture_output=True)
    (dist / "source").mkdir()
    subprocess.run(["tar", "-xf", next(dist.glob("*.tar.gz")), "-C", dist / "source"], check=True)
    (source,) = (dist / "source").iterdir()
    subprocess.run([*build, "-t", "wheel"], cwd=source, check=True, capture_output=True)
    return next(dist.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    environment = tmp_path_factory.mktemp("environment") / "venv"
    run_uv("venv", "--python", sys.executable, str(environment))
    python = str(environment / "bin" / "python")
    constraints = ["--constraint", str(ROOT / "requirements.lock")]
    run_uv("pip", "install", "--python", python, *constraints, str(wheel))
    compile_packages(Path(python))
    return Installed(environment=environment, folder=tmp_path_factory.mktemp("elsewhere"))


def test_the_wheel_of_the_source_distribution_is_that_of_the_checkout(wheel: Path, tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t", "wheel"]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (direct,) = tmp_path.glob("*.whl")
    names = [set(zipfile.ZipFile(path).namelist()) for path in (wheel, direct)]
    assert names[0] == names[1]
    assert {name.partition("/")[0] for name in names[0]} == {
        "trainmaster",
        "trainstack",
        f"trainmaster-{VERSION}.dist-info",
    }
    assert not [name for name in names[0] if "__pycache__" in name or "tests" in name.split("/")]


@pytest.mark.parametrize(("version", "python"), pythons().items(), ids=lambda each: each)
def test_every_supported_python_gets_from_nothing_to_a_champion(
    wheel: Path, tmp_path: Path, version: str, python: str
) -> None:
    """As `uvx --from` does it: a new environment without TensorFlow, and the demo in an empty folder."""
    if not python:
        pytest.skip(f"no Python {version} on the path, and none of pyenv")
    command = ["tool", "run", "--isolated", "--python", python, "--from", str(wheel)]
    settings = settings_of_uv(os.environ, home=Path.home())
    done = subprocess.run(
        [find_uv_bin(), *command, "trainmaster", "demo", "--light"], cwd=tmp_path, env=settings.environment,
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Record closed  succeeded") == 2
    assert re.search(r"promoted +val_accuracy 0\.99\d beats 0\.88", done.stdout)


@pytest.mark.parametrize("python", pythons())
def test_every_package_of_the_wheel_has_a_wheel_for_every_supported_python(
    wheel: Path, python: str, tmp_path: Path
) -> None:
    run_uv(
        "pip", "install", "--dry-run", "--python-version", python, "--only-binary", ":all:",
        "--target", str(tmp_path), str(wheel),
    )  # fmt: skip


def test_the_source_distribution_installs_the_same_version(wheel: Path, tmp_path: Path) -> None:
    run_uv("venv", "--python", sys.executable, str(tmp_path / "venv"))
    (source,) = wheel.parent.glob("*.tar.gz")
    run_uv("pip", "install", "--no-deps", "--python", str(tmp_path / "venv"), str(source))
    done = subprocess.run(
        [str(tmp_path / "venv" / "bin" / "python"), "-c", "import importlib.metadata as m; print(m.version('trainmaster'))"],
        cwd=tmp_path, env=clean(), check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout == f"{VERSION}\n"


def test_pytest_finds_the_plugin_of_the_package(installed: Installed) -> None:
    code = "from importlib.metadata import entry_points; print(*(each.value for each in entry_points(group='pytest11')))"
    python = str(installed.environment / "bin" / "python")
    done = run_to_end([python, "-c", code], cwd=installed.folder, env=clean(), check=True)
    assert "trainmaster.pytest_plugin" in done.stdout.split()


def test_a_strictly_checked_program_gets_the_types_of_the_package(
    installed: Installed, tmp_path: Path
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    python = str(installed.environment / "bin" / "python")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py"]
    done = run_to_end(command, cwd=tmp_path, env=clean())
    assert done.stdout == "Success: no issues found in 1 source file\n"


def test_nothing_but_the_package_is_importable(installed: Installed) -> None:
    code = f"from importlib.util import find_spec; print([each for each in {NOT_OURS!r} if find_spec(each)])"
    python = str(installed.environment / "bin" / "python")
    done = run_to_end([python, "-c", code], cwd=installed.folder, env=clean(), check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_says_what_it_is_and_which_extra_a_verb_needs(installed: Installed, wheel: Path) -> None:
    assert installed.run("--version").stdout == f"trainmaster {VERSION}\n"
    assert "dead-letters" in installed.run("--help").stdout
    assert f"pip install '{wheel}[tensorflow]'" in installed.run("demo", status=1).stderr


def test_the_job_of_a_request_is_shown_and_a_program_inspected(installed: Installed) -> None:
    (installed.folder / "train.py").write_text("print('trains nothing')\n")
    (installed.folder / "request.yaml").write_text(request())
    assert "workerPoolSpecs" in installed.run("plan", "--for", "api", "request.yaml").stdout
    assert "error" in installed.run("inspect", "train.py", "--request", "request.yaml", status=1).stdout


def request() -> str:
    return f"model_name: own\nimage: {IMAGE}:1\ncluster: {{chief: {{machine: n1-standard-4}}}}\n"


def test_an_empty_folder_becomes_a_model_on_record(installed: Installed, tmp_path: Path) -> None:
    """What a newcomer does. There is no TensorFlow here, though the script runs in the image of the trainer."""
    installed.run("init", cwd=tmp_path)
    started = installed.run("up", "--detach", cwd=tmp_path).stdout
    try:
        console = started.splitlines()[0].removeprefix("Console  ")
        for path in ("", "static/app.css", "static/vendor/echarts.min.js", "api/v1/openapi.json"):
            with urllib.request.urlopen(f"{console}{path}", timeout=60) as answer:
                assert answer.status == 200
        done = installed.run("submit", "request.yaml", "--script", "train.py", "--logs", cwd=tmp_path)
        run_id = done.stdout.splitlines()[0]
        assert installed.run("ls", "--state", "succeeded", "-o", "name", cwd=tmp_path).stdout == f"{run_id}\n"
        assert "val_accuracy" in installed.run("status", run_id, cwd=tmp_path).stdout
        assert "The image has tensorflow, tensorboard" in done.stdout
        (tmp_path / "find.py").write_text("import trainer\nprint('found', trainer.__file__)\n")
        done = installed.run("submit", "--script", "find.py", "--logs", cwd=tmp_path)
        assert "/app/trainer/__init__.py" in done.stdout
    finally:
        installed.run("down", cwd=tmp_path)
