"""A packed script runs as in the cloud: unpacked by its own command, with its requirements, and signalled itself."""

import hashlib
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from trainmaster.client.submission.pack import pack_script
from trainmaster.client.submission.project.root import launcher_files
from trainmaster.orchestrator.core.requests.script import RUNNER, VARIABLE, run_command
from trainmaster.resources import ROOT

from .conftest import WAYS, Stack, way_of
from .test_packages import wheel

TRAINER = "us-central1-docker.pkg.dev/p1/trainmaster/trainer"
SAY = """
import json, os, sys
import beside
print(json.dumps({"message": "said", "argv": sys.argv[1:], "beside": beside.VALUE,
                  "cwd": os.listdir(), "environ": dict(os.environ)}))
"""


@pytest.fixture
def stack(start: Callable[..., Any], request: pytest.FixtureRequest) -> Iterator[Stack]:
    with start(**getattr(request, "param", WAYS[0]), images={TRAINER: ROOT}) as running:
        yield running


def upload(buckets: Path, folder: Path, script: str = SAY, **files: str) -> str:
    """The URI of the packed script in the bucket `data`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"train.py": script, "beside.py": "VALUE = 7\n", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    packed = pack_script(folder / "train.py", more=launcher_files())
    target = buckets / "data" / "scripts" / f"{packed.sha256}.tar.gz"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(packed.content)
    return f"gs://data/scripts/{target.name}"


def pool(
    uri: str, *args: str, replicas: int = 1, image: str = f"{TRAINER}:latest", launcher: str = "none"
) -> dict[str, Any]:
    """A pool as the orchestrator builds it."""
    task = {
        "image_uri": image,
        "command": list(run_command(uri, "train.py", launcher=launcher)),
        "args": list(args),
        "env": [{"name": VARIABLE, "value": uri}],
    }
    machine = {"machine_type": "n1-standard-4"}
    return {"machine_spec": machine, "replica_count": replicas, "container_spec": task}


def run(stack: Stack, *pools: dict[str, Any]) -> str:
    """The name of a job that has succeeded."""
    job = stack.ended(stack.submit(*pools).name)
    assert job.state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    return job.name


def replica_texts(stack: Stack, name: str) -> list[str]:
    """What the job's only replica printed."""
    return stack.texts(name, "workerpool0-0")


@pytest.mark.parametrize("stack", WAYS, indirect=True, ids=way_of)
def test_a_script_is_run_with_its_arguments_beside_its_files(stack: Stack, tmp_path: Path) -> None:
    uri = upload(stack.buckets, tmp_path / "own")
    name = run(stack, pool(uri, "--epochs=2", "--x"))
    said = stack.told(name)
    assert (said["argv"], said["beside"]) == (["--epochs=2", "--x"], 7)
    assert {"beside.py", "train.py"} <= set(said["cwd"])
    assert said["environ"]["TRAINMASTER_SCRIPT"] == uri


IMPORTS = """
import contextlib, importlib
for name in ["google.cloud.pubsub_v1", "google.cloud.storage", "pip", "pytest", "trainmaster", "trainstack", "yaml"]:
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
        print(name)
"""


@pytest.mark.parametrize("stack", WAYS, indirect=True, ids=way_of)
@pytest.mark.parametrize(
    ("requirements", "names"),
    [(None, ["pip"]), ("pyyaml\ngoogle-cloud-storage\n", ["google.cloud.storage", "pip", "yaml"])],
)
def test_of_the_stacks_own_packages_a_script_finds_those_that_it_asks_for(
    stack: Stack, tmp_path: Path, requirements: str | None, names: list[str]
) -> None:
    files = {"requirements.txt": requirements} if requirements else {}
    uri = upload(stack.buckets, tmp_path / "own", IMPORTS, **files)
    assert replica_texts(stack, run(stack, pool(uri, image="python:3.11-slim"))) == names


LOOKED_FOR = """
import importlib.util
found = importlib.util.find_spec("trainer")
print("the package is", found and found.origin, "with", found and sorted(found.submodule_search_locations))
"""


@pytest.mark.parametrize(
    ("image", "files", "place"),
    [
        (f"{TRAINER}:latest", {}, "/app/trainer/__init__.py"),
        (f"{TRAINER}:latest", {"trainer/sizes.csv": "1,2\n"}, "/app/trainer/__init__.py"),
        ("python:3.11-slim", {}, "the package is None with None"),
    ],
    ids=["its own image", "beside a folder without Python", "another image"],
)
def test_a_script_finds_the_package_of_the_trainers_image_and_of_no_other(
    stack: Stack, tmp_path: Path, image: str, files: dict[str, str], place: str
) -> None:
    uri = upload(stack.buckets, tmp_path / "own", LOOKED_FOR, **files)
    (found,) = replica_texts(stack, run(stack, pool(uri, image=image)))
    assert place in found


@pytest.mark.parametrize("files", [("__init__.py", "model.py"), ("model.py",)], ids=["regular", "namespace"])
def test_a_scripts_own_package_comes_before_the_images_of_the_same_name(
    stack: Stack, tmp_path: Path, files: tuple[str, ...]
) -> None:
    """Also one without __init__.py, which Python would import only if no other place had a regular package."""
    script = "import trainer.model\nprint(trainer.model.WHO)\n"
    own = dict.fromkeys((f"trainer/{name}" for name in files), "WHO = 'the user'\n")
    uri = upload(stack.buckets, tmp_path / "own", script, **own)
    assert replica_texts(stack, run(stack, pool(uri))) == ["the user"]


TOGETHER = """
import os, pathlib, time
root = pathlib.Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), "data", "together")
root.mkdir(exist_ok=True)
(root / os.getcwd().replace("/", "-")).touch()
while len(list(root.iterdir())) < 3:
    time.sleep(0.05)
"""


def test_every_replica_unpacks_a_copy(stack: Stack, tmp_path: Path) -> None:
    """The job succeeds once three replicas have seen each other, each in another folder."""
    uri = upload(stack.buckets, tmp_path / "own", TOGETHER)
    run(stack, pool(uri), pool(uri, replicas=2))


@pytest.mark.slow
def test_requirements_are_installed_once_for_all_scripts_that_have_the_same(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel(tmp_path / "index", "vendored", code="ANSWER = 42\n")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    needs = {"requirements.txt": "--no-index\nvendored==1.0\n"}
    show = "import sys, vendored; print('answer', vendored.ANSWER, 'in', sys.path[-1], flush=True)\n"
    names = [
        run(stack, pool(upload(stack.buckets, tmp_path / "own", f"{show}# {number}\n", **needs)))
        for number in range(2)
    ]
    said = [
        text
        for name in names
        for text in stack.texts(name, "workerpool0-0")
        if text.startswith("answer 42 in ")
    ]
    assert len(said) == 2
    assert len(set(said)) == 1
    assert sys.prefix not in said[0]
    making = "Making the script's Python environment; it is kept for the next job."
    assert [making in stack.service_lines(name) for name in names] == [True, False]


def test_invalid_requirements_fail_the_job_and_name_the_file_of_the_script(
    stack: Stack, tmp_path: Path
) -> None:
    needs = {"requirements.txt": "numpy please\n"}
    job = stack.ended(stack.submit(pool(upload(stack.buckets, tmp_path / "own", **needs))).name)
    assert job.state.name == "JOB_STATE_FAILED"
    first, *said = job.error.message.splitlines()
    assert first == "The script's packages cannot be installed here: uv failed at requirements.txt."
    assert any("`requirements.txt`" in line for line in said), said
    assert "image" not in job.error.message
    assert str(tmp_path) not in job.error.message


def test_an_archive_that_was_replaced_or_removed_is_not_run(stack: Stack, tmp_path: Path) -> None:
    uri = upload(stack.buckets, tmp_path / "own")
    archive = stack.buckets / uri.removeprefix("gs://")
    archive.write_bytes(pack_script(Path(__file__)).content)
    name = stack.ended(stack.submit(pool(uri)).name).name
    assert f"{uri} is not the archive that was submitted: its content has another SHA-256." in stack.texts(
        name
    )
    archive.unlink()
    name = stack.ended(stack.submit(pool(uri)).name).name
    assert any(text.startswith(f"The script's archive {uri} cannot be read") for text in stack.texts(name))


def test_an_archive_that_unpacks_elsewhere_writes_nothing_there(stack: Stack, tmp_path: Path) -> None:
    evil = tmp_path / "evil.tar.gz"
    with tarfile.open(evil, "w:gz") as tar:
        (tmp_path / "x").write_text("x")
        tar.add(tmp_path / "x", "requirements.txt")
        tar.add(tmp_path / "x", "../../outside")
    target = stack.buckets / "data" / f"{hashlib.sha256(evil.read_bytes()).hexdigest()}.tar.gz"
    target.parent.mkdir(parents=True)
    target.write_bytes(evil.read_bytes())
    job = stack.ended(stack.submit(pool(f"gs://data/{target.name}")).name)
    assert job.state.name == "JOB_STATE_FAILED"
    assert not list(tmp_path.rglob("outside"))


def runner(
    tmp_path: Path,
    uri: str,
    *args: str,
    python: str = sys.executable,
    program: str = "none train.py",
    **variables: str,
) -> "subprocess.Popen[str]":
    """The command outside the stack, as in a container without pip's configuration."""
    environment = {
        "PATH": os.environ["PATH"],
        "TRAINMASTER_GCS_ROOT": str(tmp_path),
        "TMPDIR": str(tmp_path),
        **variables,
    }
    command = [python, "-c", RUNNER, uri, *program.split(), *args]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("program", ["none jobs/fit.py", "none -m jobs.fit", "none -m house.fit"])
def test_the_root_and_its_src_are_on_the_import_path(tmp_path: Path, program: str) -> None:
    """They come before the image's packages, also without `__init__.py`."""
    (tmp_path / "image" / "house").mkdir(parents=True)
    (tmp_path / "image" / "house" / "__init__.py").touch()
    own = {"jobs/fit.py": "import lib, house.fit\n", "lib.py": "print('lib', end=' ')\n"}
    own |= {"src/house/fit.py": "import sys\nprint('house', sys.argv[1:])\n"}
    uri = upload(tmp_path, tmp_path / "own", "", **own)
    with runner(tmp_path, uri, "-x", program=program, PYTHONPATH=str(tmp_path / "image")) as process:
        said, errors = process.communicate(timeout=60)
    assert said == ("" if "house" in program else "lib ") + "house ['-x']\n", errors


# A job ends with its chief, which here waits until the other replica has printed.
MEET = """
import os, pathlib, time

def meet(rank):
    printed = pathlib.Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), "data", "printed")
    if rank != "0":
        printed.touch()
    while not printed.exists():
        time.sleep(0.05)
"""
LAUNCHERS = {
    "meeting.py": MEET,
    "torch/__init__.py": "class cuda:\n    is_available = bool\n",
    "torch/distributed/__init__.py": "",
    "torch/distributed/run.py": "import os, sys\nprint(*(os.environ['PET_' + name] for name in "
    "('NODE_RANK', 'NNODES', 'NPROC_PER_NODE')), *sys.argv[1:])\n"
    "from meeting import meet\nmeet(os.environ['PET_NODE_RANK'])\n",
    "accelerate/commands/launch.py": "import sys\nprint(*sys.argv[1:7], *sys.argv[11:])\n"
    "from meeting import meet\nmeet(sys.argv[6])\n",
}


@pytest.mark.parametrize(
    ("launcher", "said"),
    [
        ("torchrun", "{} 2 1 train.py -x"),
        ("accelerate", "--num_machines 2 --num_processes 2 --machine_rank {} --cpu train.py -x"),
    ],
)
def test_a_launcher_learns_the_place_of_its_replica_among_the_others(
    stack: Stack, tmp_path: Path, launcher: str, said: str
) -> None:
    """With other programs in place of PyTorch's own, which tests/e2e/verbs/test_projects.py runs."""
    uri = upload(stack.buckets, tmp_path / "own", "", **LAUNCHERS)
    name = run(stack, *[pool(uri, "-x", launcher=launcher)] * 2)
    for number in (0, 1):
        assert said.format(number) in stack.texts(name, f"workerpool{number}-0")


def test_sigterm_reaches_the_script(tmp_path: Path) -> None:
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\n"
        "print('ready', flush=True)\n"
        "time.sleep(300)\n"
    )
    with runner(tmp_path, upload(tmp_path, tmp_path / "own", script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=120) == 7


@pytest.mark.slow(seconds=10)
def test_in_a_container_requirements_are_installed_beside_the_images_packages(tmp_path: Path) -> None:
    """The image is like the trainer's: its environment has packages and no pip, and the Python that it is made of has pip.

    The image's packages stay visible and unchanged; those of the script come first.
    """
    base = Path(sys.base_prefix) / "bin" / "python3"
    if subprocess.call([base, "-c", "import pip"], stderr=subprocess.DEVNULL) != 0:
        pytest.skip("the Python of this environment has no pip: on Debian, apt-get install python3-pip")
    image = tmp_path / "image"
    subprocess.run([find_uv_bin(), "venv", "--quiet", "--python", sys.executable, str(image)], check=True)
    python = str(image / "bin" / "python")
    for name, version in (("vendored", "0.9"), ("vendored", "1.0"), ("shared", "1.0")):
        wheel(tmp_path / "index", name, code=f"VERSION = {version!r}\n", version=version)
    offline = ["--no-index", "--find-links", str(tmp_path / "index")]
    install = [find_uv_bin(), "pip", "install", "--quiet", "--python", python, *offline]
    subprocess.run([*install, "vendored==0.9", "shared"], check=True)
    show = "import vendored, shared; print(vendored.VERSION, vendored.__file__, shared.__file__, sep='\\n')\n"
    uri = upload(tmp_path, tmp_path / "own", show, **{"requirements.txt": "vendored>=1\nshared\n"})
    index = str(tmp_path / "index")
    where = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": index,
        "AIP_CHECKPOINT_DIR": "gs://models/run/checkpoints/",
    }
    with runner(tmp_path, uri, python=python, **where) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    version, own, shared = out.splitlines()[-3:]
    assert version == "1.0"
    assert not own.startswith(str(image))
    assert shared.startswith(str(image))
    assert {"shared==1.0", "vendored==1.0"} <= {*(tmp_path / "models/run/installed.txt").read_text().split()}


@pytest.mark.parametrize(("role", "lists"), [("workerpool0", True), ("workerpool1", False)])
def test_the_chief_lists_what_is_installed_and_runs_also_where_it_cannot(
    tmp_path: Path, role: str, *, lists: bool
) -> None:
    uri = upload(tmp_path, tmp_path / "own", "print('runs')")
    (tmp_path / "file").touch()
    for bucket in ("models", "file"):
        place = {
            "AIP_CHECKPOINT_DIR": f"gs://{bucket}/run/checkpoints",
            "CLUSTER_SPEC": f'{{"task": {{"type": "{role}"}}}}',
        }
        with runner(tmp_path, uri, **place) as process:
            out, err = process.communicate(timeout=60)
        assert (out, "not on record" in err) == ("runs\n", lists and bucket == "file")
    listed = tmp_path / "models/run/installed.txt"
    assert listed.exists() is lists
    assert not lists or f"pytest=={pytest.__version__}" in listed.read_text().split()


@pytest.mark.slow
def test_in_a_container_requirements_that_cannot_be_installed_end_it_with_the_reason(tmp_path: Path) -> None:
    uri = upload(tmp_path, tmp_path / "own", **{"requirements.txt": "no-such-package==1\n"})
    with runner(tmp_path, uri, PIP_NO_INDEX="1") as process:
        _, err = process.communicate(timeout=300)
    assert process.returncode == 1
    assert "requirements.txt cannot be installed: pip ended with status 1, see its output above." in err
