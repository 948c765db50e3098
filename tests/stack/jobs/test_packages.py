"""Python packages from the bucket: installed in each replica before its module runs, or a failed job that says why."""

import io
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from . import studies
from .conftest import PREBUILT, WAYS, Stack, container, package, way_of
from .studies import REPORT, study

TELL = """
import json, os, sys, demo_trainer
from importlib.metadata import version
print(json.dumps({"event": "found", "message": "found", "argv": sys.argv[1:], "environ": dict(os.environ),
                  "file": demo_trainer.__file__, "version": version("demo-trainer")}))
"""
SETUP = "from setuptools import setup\nsetup(name='demo-trainer', version='0.2', packages=['demo_trainer'], install_requires={needs!r})\n"


@pytest.fixture
def stack(start: Callable[..., Any], request: pytest.FixtureRequest) -> Iterator[Stack]:
    with start(**getattr(request, "param", WAYS[0])) as running:
        yield running


def sdist(path: Path, *, needs: tuple[str, ...] = ()) -> None:
    """A source distribution as `python setup.py sdist` makes it, and without a version in its file's name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files = {
        "setup.py": SETUP.format(needs=list(needs)),
        "demo_trainer/__init__.py": "",
        "demo_trainer/task.py": TELL,
    }
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"demo-trainer-0.2/{name}")
            member.size, member.mtime = len(text.encode()), int(time.time())
            archive.addfile(member, io.BytesIO(text.encode()))


def wheel(folder: Path, name: str, *, code: str, needs: tuple[str, ...] = (), version: str = "1.0") -> str:
    """A wheel with the one module `name`; the file's name."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": metadata + "".join(f"Requires-Dist: {need}\n" for need in needs),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl"


def facts_of(stack: Stack, name: str, task: str = "workerpool0-0") -> dict[str, Any]:
    found: dict[str, Any] = next(
        entry["jsonPayload"]
        for entry in stack.logged(name, task)
        if entry.get("jsonPayload", {}).get("event")
    )
    return found


def assert_answers(stack: Stack, name: str) -> None:
    """The job, whose program prints an answer, succeeds."""
    assert stack.ended(name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(name)
    assert "answer 42" in stack.texts(name, "workerpool0-0")


@pytest.mark.slow
@pytest.mark.parametrize("stack", WAYS, indirect=True, ids=way_of)
def test_a_source_distribution_is_installed_and_its_module_gets_the_arguments(stack: Stack) -> None:
    sdist(
        stack.buckets / "b" / "staging" / "trainer.tar.gz",
        needs=("numpy", "pyyaml>=5", "nowhere; python_version<'3'"),
    )
    pool = package(
        "gs://b/staging/trainer.tar.gz", module="demo_trainer.task", args=("--epochs=2", "--x"), MINE="1"
    )
    job = stack.submit(pool, base_output_directory={"output_uri_prefix": "gs://b/out"})
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    found = facts_of(stack, job.name)
    assert found["argv"] == ["--epochs=2", "--x"]
    assert found["version"] == "0.2"
    assert found["environ"]["AIP_MODEL_DIR"] == "gs://b/out/model/"
    assert found["environ"]["MINE"] == "1"
    assert Path(found["file"]).is_relative_to(Path(found["environ"]["TMPDIR"]).parent / "python")
    assert any(" + demo-trainer==0.2" in text for text in stack.texts(job.name, "workerpool0-0"))
    assert "ERROR" not in {entry["severity"] for entry in stack.logged(job.name, "workerpool0-0")}
    assert not Path(found["file"]).exists()
    # With Python, where the base image's is another: "Python 3.11 and tensorflow 2.21.0 stand for …".
    here = f"tensorflow {metadata.version('tensorflow')} stand"
    there = f"tensorflow 2.17 of the base image {PREBUILT}"
    assert any(here in text and there in text for text in stack.service_lines(job.name))


def test_wheels_that_need_each_other_and_this_machines_packages_need_no_index(stack: Stack) -> None:
    bucket = stack.buckets / "b"
    lib = wheel(bucket, "demo_lib", code="ANSWER = 42\n")
    app = wheel(bucket, "demo_app", code="import demo_lib, numpy; print('answer', demo_lib.ANSWER)\n",
                needs=("demo_lib>=1", "numpy>=1", "requests[socks]; extra == 'none'"))  # fmt: skip
    job = stack.submit(package(f"gs://b/{app}", f"gs://b/{lib}", module="demo_app", UV_OFFLINE="1"))
    assert_answers(stack, job.name)


@pytest.mark.slow
def test_what_is_needed_and_nowhere_here_is_asked_of_the_index(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    index = tmp_path / "index"
    wheel(index, "demo_deep", code="DEPTH = 2\n")
    wheel(index, "demo_lib", code="import demo_deep\nANSWER = 40 + demo_deep.DEPTH\n", needs=("demo_deep",))
    wheel(index, "demo_lib", code="ANSWER = 0\n", version="0.9")
    with start() as stack:
        app = wheel(stack.buckets / "b", "demo_app", code="import demo_lib; print('answer', demo_lib.ANSWER)\n",
                    needs=("demo_lib",))  # fmt: skip
        job = stack.submit(
            package(f"gs://b/{app}", module="demo_app", PIP_NO_INDEX="1", PIP_FIND_LINKS=str(index))
        )
        assert_answers(stack, job.name)


def test_the_index_is_the_users_own_where_the_job_names_none(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.setenv(name, (tmp_path / "no-index").as_uri())
    (tmp_path / "no-index").mkdir()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    wheel(tmp_path / "wheels", "demo_lib", code="ANSWER = 42\n")
    app = wheel(stack.buckets / "b", "demo_app", code="import demo_lib; print('answer', demo_lib.ANSWER)\n",
                needs=("demo_lib",))  # fmt: skip
    job = stack.submit(package(f"gs://b/{app}", module="demo_app"))
    assert_answers(stack, job.name)


def test_each_replica_installs_for_itself_also_one_that_is_started_again(stack: Stack) -> None:
    worker = (
        "import json, os, pathlib, signal, time\n"
        "root = pathlib.Path(os.environ.get('TRAINMASTER_GCS_ROOT', '/gcs')) / 'b'\n"
        "task = json.loads(os.environ['CLUSTER_SPEC'])['task']\n"
        "print('runs from', __file__, flush=True)\n"
        "if task['type'] == 'workerpool1':\n"
        "    if not (root / 'died').exists():\n"
        "        (root / 'died').touch(); os.kill(os.getpid(), 9)\n"
        "    (root / 'done').touch()\n"
        "while not (root / 'done').exists(): time.sleep(0.01)\n"
    )
    pool = package(f"gs://b/{wheel(stack.buckets / 'b', 'demo_app', code=worker)}", module="demo_app")
    job = stack.submit(pool, pool)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    places = [text for text in stack.texts(job.name) if text.startswith("runs from")]
    assert len(places) == len(set(places)) == 3


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "The package 'gs://b/t.tar.gz' cannot be read: there is no such object. Upload it first."),
        (b"no archive", "These packages could not be installed: "),
    ],
)
def test_an_unreadable_package_fails_the_job_with_the_replica_and_the_reason(
    stack: Stack, content: bytes | None, reason: str
) -> None:
    (stack.buckets / "b").mkdir()
    if content is not None:
        (stack.buckets / "b" / "t.tar.gz").write_bytes(content)
    job = stack.submit(package("gs://b/t.tar.gz", module="demo_trainer.task"))
    ended = stack.ended(job.name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert "The replica workerpool0-0 exited with a non-zero status of 1." in ended.error.message
    last = stack.logged(job.name, "workerpool0-0")[-1]
    assert last["severity"] == "ERROR"
    assert last["jsonPayload"]["message"].startswith(reason)
    assert "t.tar.gz" in "".join(stack.texts(job.name, "workerpool0-0"))


def test_a_module_that_is_not_in_the_packages_fails_the_job(stack: Stack) -> None:
    app = wheel(stack.buckets / "b", "demo_app", code="")
    job = stack.submit(package(f"gs://b/{app}", module="demo_absent"))
    assert "status of 1." in stack.ended(job.name).error.message
    assert "No module named demo_absent" in stack.texts(job.name, "workerpool0-0")[-1]


def test_a_prebuilt_container_runs_a_command_and_without_one_has_nothing_to_run(stack: Stack) -> None:
    job = stack.submit(container("-c", "print('here')", image=PREBUILT, command=["python"]))
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert stack.texts(job.name, "workerpool0-0") == ["here"]
    for words in ((), ("--flag",)):
        idle = stack.submit(container(*words, image=PREBUILT))
        assert "Worker pool 0 has nothing to run" in stack.ended(idle.name).error.message


def test_trials_run_packages_with_their_parameters_as_flags(stack: Stack) -> None:
    app = wheel(stack.buckets / "b", "demo_app", code=REPORT + "report(x, 1)")
    pool = package(f"gs://b/{app}", module="demo_app", args=("--mine=1",))
    job = study(stack, "", job_spec={"worker_pool_specs": [pool]}, max_trial_count=1, parallel_trial_count=1)
    done = studies.ended(stack, job.name)
    assert done.state.name == "JOB_STATE_SUCCEEDED", done
    (trial,) = done.trials
    assert trial.final_measurement.metrics[0].value == pytest.approx(trial.parameters[0].value)
