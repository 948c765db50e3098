"""The Python environment that a job's image gets: really made by uv, from wheels on this machine."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.stack.waiting import wait_until
from trainstack.jobs.images import environments
from trainstack.jobs.images.dockerfile import read_image
from trainstack.jobs.images.environments import Environments
from trainstack.jobs.images.installs import Install
from trainstack.jobs.images.programs import PoolProgram
from trainstack.jobs.images.recipes import recipe_of
from trainstack.process.processes import ProcessGuard

from .conftest import WAYS, Stack, container, package, way_of
from .test_packages import wheel

pytestmark = pytest.mark.slow

OWN = "us-docker.pkg.dev/p1/repo/own"
SHOW = """
import sys
import vendored
print("answer", vendored.ANSWER, "in", sys.path[-1], flush=True)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with its own wheel and a program that imports it."""
    folder = tmp_path / "own"
    wheel(folder, "vendored", code="ANSWER = 42\n")
    (folder / "show.py").write_text(SHOW)
    write(folder, "RUN pip install --no-index ./vendored-1.0-py3-none-any.whl")
    return folder


@pytest.fixture
def stack(start: Callable[..., Any], tree: Path, request: pytest.FixtureRequest) -> Iterator[Stack]:
    with start(**getattr(request, "param", WAYS[0]), images={OWN: tree}) as running:
        yield running


def write(tree: Path, *lines: str, base: str = "python:3-slim") -> None:
    text = "\n".join(
        (f"FROM {base}", "WORKDIR /app", "COPY . .", *lines, 'ENTRYPOINT ["python", "show.py"]', "")
    )
    (tree / "Dockerfile").write_text(text)


def run(stack: Stack, *, succeeds: bool = True) -> str:
    """The name of a job that has ended."""
    job = stack.ended(stack.submit(container(image=OWN)).name)
    assert (job.state.name == "JOB_STATE_SUCCEEDED") is succeeds, stack.texts(job.name)
    return job.name


def error(stack: Stack) -> str:
    """The error of a job that has failed."""
    job = stack.jobs.get_custom_job(name=run(stack, succeeds=False))
    return str(job.error.message)


def prefix(stack: Stack, name: str) -> Path:
    """The environment that the replica's own one stands on."""
    (said,) = [text for text in stack.texts(name, "workerpool0-0") if text.startswith("answer 42 in ")]
    return Path(said.removeprefix("answer 42 in ")).parents[2]


@pytest.mark.parametrize("stack", WAYS, indirect=True, ids=way_of)
def test_what_the_dockerfile_installs_is_there_and_the_next_job_finds_it_ready(stack: Stack) -> None:
    first, second = run(stack), run(stack)
    assert prefix(stack, first) == prefix(stack, second) != Path(sys.prefix)
    assert any("vendored==1.0" in text for text in stack.service_lines(first))
    making = "Making the image's Python environment; it is kept for the next job."
    assert making in stack.service_lines(first)
    assert making not in stack.service_lines(second)


def test_jobs_that_want_the_same_environment_wait_for_one_that_makes_it(stack: Stack) -> None:
    names = [stack.submit(container(image=OWN)).name for _ in range(3)]
    assert {stack.ended(name).state.name for name in names} == {"JOB_STATE_SUCCEEDED"}
    assert len({prefix(stack, name) for name in names}) == 1
    said = [text for name in names for text in stack.service_lines(name)]
    assert sum("Making the image's" in text for text in said) == 1


def test_requirements_and_a_project_of_the_source_tree_are_installed(stack: Stack, tree: Path) -> None:
    (tree / "requirements.txt").write_text("# ours\n./vendored-1.0-py3-none-any.whl\n")
    project = tree / "lib"
    wheel(project, "second", code="")
    write(
        tree,
        "RUN pip install --no-index -r requirements.txt",
        "WORKDIR lib",
        "RUN pip install --no-index --find-links . second",
        "WORKDIR /app",
    )
    name = run(stack)
    lines = stack.service_lines(name)
    assert any("vendored==1.0" in text for text in lines)
    assert any("second==1.0" in text for text in lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"packaging>=20 --hash=sha256:{'0' * 64}\n# a comment\nPyYAML  # and one more\n", True),
        ("nowhere; python_version < '3'\n", True),
        ("packaging<1\n", False),
        ("nowhere-at-all\n", False),
        ("packaging @ https://example.com/packaging-1-py3-none-any.whl\n", False),
        ("./lib\n", False),
        ("-r more.txt\n", False),
    ],
)
def test_the_stacks_own_environment_will_do_where_it_has_what_is_asked_for(
    tmp_path: Path, text: str, expected: bool
) -> None:
    (tmp_path / "more.txt").write_text("nowhere-at-all\n")
    (tmp_path / "requirements.txt").write_text(text)
    write(tmp_path, "RUN pip install -r requirements.txt")
    assert environments._is_met_by_own(recipe_of(read_image(tmp_path))) is expected


def test_a_script_sees_the_images_packages_behind_its_own_ones(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text('FROM python:3\nLABEL trainstack.packages="requests nowhere"\n')
    wheels = [
        wheel(tmp_path, "idna", code="MINE = 1\n", version="3.99"),
        wheel(tmp_path, "vendored", code=""),
    ]
    words = ("--no-index", "requests", *(str(tmp_path / name) for name in wheels))
    install = Install(line="requirements.txt", words=words, is_of_script=True)
    program = PoolProgram(
        image=(image := read_image(tmp_path)), argv=(), env=(), recipe=recipe_of(image, [install])
    )
    said = list[str]()

    async def say(text: str, _severity: str = "INFO") -> None:
        said.append(text)

    with closing(ProcessGuard()) as guard:

        async def made() -> Path:
            prepared = await Environments(tmp_path / "environments", guard).prepare({0: program}, say)
            await asyncio.gather(*asyncio.all_tasks() - {asyncio.current_task()})  # it compiles the packages
            return prepared[0].python

        python = asyncio.run(made())
        code = "import idna, requests, vendored; print(idna.MINE); import pytest"
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr.splitlines()[-1]) == (
        "1\n",
        "ModuleNotFoundError: No module named 'pytest'",
    )
    assert said[0].startswith("The image has nowhere, and the stack's own environment has not.")
    assert Path(str(distribution("idna").locate_file("idna/core.py"))).exists()


PIP = """
import importlib.metadata, subprocess, sys
assert importlib.metadata.version("vendored") == "1.0"
commands = [[sys.executable, "-m", "pip"], ["pip3"]]
for command, name in zip(commands, ["vendored-2.0-py3-none-any.whl", "late-1.0-py3-none-any.whl"]):
    words = ["install", "-q", "--no-index", "--user", f"./{name}"]
    subprocess.run([*command, *words], check=True)
print(subprocess.run(["python", "-c", "import late, vendored; print('answer', vendored.ANSWER, late.ANSWER)"],
                     check=True, text=True, capture_output=True).stdout, flush=True)
"""


@pytest.mark.parametrize("stack", WAYS[::2], indirect=True, ids=way_of)
def test_a_replica_may_change_its_packages_with_pip_and_no_other_replica_sees_it(
    stack: Stack, tree: Path
) -> None:
    wheel(tree, "vendored", version="2.0", code="ANSWER = 43\n")
    wheel(tree, "late", code="ANSWER = 1\n")
    shown = (tree / "show.py").read_text()
    for text, line in ((PIP, "answer 43 1"), (shown, "answer 42 in"), (PIP, "answer 43 1")):
        (tree / "show.py").write_text(text)
        assert any(said.startswith(line) for said in stack.texts(run(stack), "workerpool0-0"))


def test_dockerfile_lines_that_are_not_carried_out_are_in_the_jobs_log(stack: Stack, tree: Path) -> None:
    (tree / "vendored.py").write_text("ANSWER = 42\n")
    write(tree, "RUN apt-get update && apt-get install -y libgl1", "HEALTHCHECK CMD true")
    logged = stack.logged(run(stack), "service")
    warnings = [entry["textPayload"] for entry in logged if entry["severity"] == "WARNING"]
    assert "Not done here, from the Dockerfile: RUN apt-get update && apt-get install -y libgl1" in warnings
    assert "Not done here, from the Dockerfile: HEALTHCHECK CMD true" in warnings


def test_a_failed_build_is_reported_with_the_first_line_of_its_error(stack: Stack, tree: Path) -> None:
    install_built(tree, "broken", "print('much\\n' * 100)\nraise ValueError('no compiler')\n")
    lines = error(stack).splitlines()
    assert lines[1].startswith("error: Failed to build `broken @")  # uv may break the line here
    assert lines[2] == "…"
    assert any("no compiler" in line for line in lines)


def test_packages_that_cannot_be_installed_fail_the_job_with_the_end_of_what_uv_said(
    stack: Stack, tree: Path
) -> None:
    write(tree, "RUN pip install --no-index nowhere-at-all==9", base="python:3.1")
    message = error(stack)
    assert message.endswith(" stands for Python 3.1 of the base image python:3.1.")
    assert message.startswith(
        "The image's packages cannot be installed here: uv failed at pip install --no-index nowhere-at-all==9.\n"
    )
    assert "nowhere-at-all was not found" in message


def test_an_unreachable_index_is_named_with_the_repairs(
    stack: Stack, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    write(tree, "RUN pip install --index-url http://user:secret@127.0.0.1:9/simple nowhere-at-all")
    message = error(stack)
    what, unreachable, *repairs = message.partition("\nuv printed:\n")[0].splitlines()
    assert (
        what
        == "The image's packages cannot be installed here: uv failed at pip install --index-url http://***@127.0.0.1:9/simple nowhere-at-all."
    )
    assert unreachable == "The package index cannot be reached. Do one of these:"
    assert [line[:2] for line in repairs] == ["- "] * 3
    assert "127.0.0.1:9/simple/nowhere-at-all/" in message
    assert not [entry for entry in stack.entries if "secret" in str(entry)]
    assert "secret" not in message


class Refusing(BaseHTTPRequestHandler):
    """An index that asks for a password."""

    def do_GET(self) -> None:
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="packages"')
        self.end_headers()


def test_an_index_that_asks_for_a_password_is_the_reason(stack: Stack, tree: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as index:
        Thread(target=index.serve_forever, daemon=True).start()
        host = f"http://127.0.0.1:{index.server_port}/simple"
        write(tree, f"RUN pip install --index-url {host} nowhere-at-all")
        _, reason, printed, *said = error(stack).splitlines()
        index.shutdown()
    assert reason.startswith(
        "A package index asks for a name and a password. Start the stack with them in a .netrc, "
    )
    assert printed == "uv printed:"
    assert any("401 Unauthorized" in line for line in said), said


def test_a_base_that_is_not_known_is_refused_with_the_repair(stack: Stack, tree: Path) -> None:
    write(tree, base="example.com/team/base:3")
    message = error(stack)
    assert message.startswith("The base image 'example.com/team/base:3' is not known here")
    assert "example.com/team/base=DIR" in message


def test_a_python_package_runs_in_the_environment_of_its_executor_image(stack: Stack) -> None:
    app = wheel(stack.buckets / "b", "demo_app", code=SHOW, needs=("vendored>=1",))
    job = stack.ended(
        stack.submit(package(f"gs://b/{app}", module="demo_app", image=OWN, UV_OFFLINE="1")).name
    )
    assert job.state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    assert prefix(stack, job.name) != Path(sys.prefix)


def test_an_installation_has_a_time_limit(
    stack: Stack, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "INSTALL_LIMIT_S", 0.5)
    endless(tree, tmp_path)
    assert error(stack) == "The image's packages were not installed within 0.5 s."
    assert list((tmp_path / "state" / "environments").iterdir()) == []


def test_a_job_that_is_cancelled_meanwhile_leaves_nothing_half_made(
    stack: Stack, tree: Path, tmp_path: Path
) -> None:
    endless(tree, tmp_path)
    job = stack.submit(container(image=OWN))
    wait_until((tmp_path / "begun").exists)
    stack.jobs.cancel_custom_job(name=job.name)
    assert stack.ended(job.name).state.name == "JOB_STATE_CANCELLED"
    assert list((tmp_path / "state" / "environments").iterdir()) == []


def test_a_stack_that_ends_meanwhile_leaves_no_partial_environment_and_the_job_resumes(
    start: Callable[..., Any], tree: Path, tmp_path: Path
) -> None:
    endless(tree, tmp_path)
    with start(images={OWN: tree}) as stack:
        name = stack.submit(container(image=OWN)).name
        wait_until((tmp_path / "begun").exists)
    half = tmp_path / "state" / "environments" / "0123"
    half.mkdir()
    shutil.copy(tree / "vendored-1.0-py3-none-any.whl", half)
    write(tree, "RUN pip install --no-index ./vendored-1.0-py3-none-any.whl")
    with start(images={OWN: tree}) as stack:
        assert stack.ended(name).state.name == "JOB_STATE_SUCCEEDED"
        assert [path.name for path in half.parent.iterdir()] == [prefix(stack, name).name]


def test_a_stack_that_starts_removes_the_environments_that_were_not_used_for_longest(
    start: Callable[..., Any], tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environments, "MAX_KEPT", 2)
    prefixes = []
    with start(images={OWN: tree}) as stack:
        for number in range(3):
            wheel(tree, "vendored", code=f"ANSWER = 42  # {number}\n")
            prefixes.append(prefix(stack, run(stack)))
            os.utime(prefixes[-1] / "ready", (number, number))
        assert all(path.exists() for path in prefixes)
    with start(images={OWN: tree}):
        assert [path.exists() for path in prefixes] == [False, True, True]


def endless(tree: Path, tmp_path: Path) -> None:
    """Have the installation of the tree build a package that never is done, and says that it has begun."""
    begun = f"pathlib.Path({str(tmp_path / 'begun')!r}).touch()"
    install_built(tree, "endless", f"import pathlib, threading\n{begun}\nthreading.Event().wait()\n")


def install_built(tree: Path, name: str, backend: str) -> None:
    """Have the image of the tree install a package that this program builds."""
    package = tree / name
    package.mkdir()
    (package / "pyproject.toml").write_text(
        f'[project]\nname = "{name}"\nversion = "1"\n'
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    (package / "backend.py").write_text(backend)
    write(tree, f"RUN pip install --no-index ./{name}")
