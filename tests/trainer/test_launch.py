"""python -m trainer.launch as a user runs it: what is refused, and what the command finds."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainer.launch.__main__ import changed_environment, main
from trainer.launch.frameworks import FRAMEWORKS
from trainstack.process.ports import free_ports

from .launched import BARE, ENDS_WITHIN_S, ROOT, TELL, launch, spec, spec_of, started, told


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["--framework is missing; expected one of torch", "end with `-- COMMAND`"]),
        (["--framework", "torch"], ["end with `-- COMMAND`"]),
        (["--framework=torch", "--"], ["end with `-- COMMAND`"]),
        (["--framework=torch", "--", "", "a"], ["end with `-- COMMAND`"]),
        (["--framework", "pytorch", "--", "a"], ["--framework=pytorch: expected one of torch, jax"]),
        (["--framework", "--", "a"], ["--framework=: expected one of torch"]),
        (["--framewrok=torch", "--", "a"], ["Unknown flag '--framewrok'", "Did you mean 'framework'?"]),
        (["--framework=jax", "python", "--", "a"], ["Unexpected argument 'python'"]),
        (["--framework=tf"], ["--framework=tf:", "The command", "TF_CONFIG:", "CLUSTER_SPEC:"]),
    ],
)  # fmt: skip
def test_every_fault_of_a_command_line_and_of_the_cluster_is_reported(
    arguments: list[str], expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {"CLUSTER_SPEC": "{", "TF_CONFIG": "[]"} if "TF_CONFIG:" in expected else {}
    assert main(arguments, environment) == 2
    text = capsys.readouterr().err
    assert [words for words in expected if words not in text] == []


def test_help_is_printed_when_asked_for_before_the_command() -> None:
    done = launch("--help", environment={"COLUMNS": "200"})
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in FRAMEWORKS)


def test_the_process_becomes_the_command_with_its_arguments_as_they_are() -> None:
    arguments = ["two words", "--", "", "--framework=jax", "ä\n"]
    command = ("--framework", "torch", "--", sys.executable, "-c", TELL, *arguments)
    with started(*command, environment={"PYTHONUTF8": "1"}) as process:
        printed, _ = process.communicate(timeout=ENDS_WITHIN_S)
        assert json.loads(printed)[:2] == [process.pid, arguments]


@pytest.mark.parametrize(
    ("command", "status"),
    [("no-such-program", 127), ("{}/none", 127), ("{}", 126), ("{}/text", 126), ("{}/program", 126)],
)
def test_a_command_that_is_missing_exits_with_127_and_one_that_cannot_be_run_with_126(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    (tmp_path / "text").write_text("print('no first line')\n")
    (tmp_path / "program").write_text("no machine code\n")
    (tmp_path / "program").chmod(0o755)
    path = command.format(tmp_path)
    assert main(["--framework=torch", "--", path], BARE) == status
    expected = f"{path!r} was not found" if status == 127 else f"Cannot run {path!r}"
    assert expected in capsys.readouterr().err


def test_one_line_reports_the_cluster_and_every_changed_variable() -> None:
    environment = spec([1, 1], pool=1) | {"RANK": "9", "AIP_MODEL_DIR": "gs://b/model/"}
    done = launch("--framework=torch", "--", sys.executable, "-c", "", environment=environment)
    (line,) = done.stderr.splitlines()
    assert line.startswith("trainer.launch --framework torch: This is worker-0 of a cluster of")
    assert "AIP_MODEL_DIR=gs://b/model/" in line
    assert " Sets MASTER_ADDR=workerpool0-0, PET_MASTER_ADDR=workerpool0-0, MASTER_PORT=2222, " in line
    assert ", RANK=1 (was 9), GROUP_RANK=1, " in line
    assert line.endswith(f"runs {sys.executable!r}.")


def test_other_variables_reach_the_command_unchanged() -> None:
    """Importing the trainer chooses Keras 2 for itself, which is none of a launched program's business."""
    for own in ({}, {"TF_USE_LEGACY_KERAS": "0", "ODD": "a=b", "EMPTY": ""}):
        assert told("ai-platform", own) == own


def test_defaults_do_not_overwrite_the_users_variables() -> None:
    variables = {"RANK": "1", "GLOO_SOCKET_IFNAME": "lo", "HOROVOD_GLOO_TIMEOUT_SECONDS": "1800"}
    own = {"GLOO_SOCKET_IFNAME": "eth0", "RANK": "1", "HOME": "/"}
    changed, changes = changed_environment(variables, own)
    assert changed == own | {"HOROVOD_GLOO_TIMEOUT_SECONDS": "1800"}
    assert changes == "RANK=1, HOROVOD_GLOO_TIMEOUT_SECONDS=1800"


def _interpreters() -> Iterator[str]:
    """This one and every other supported one that is installed and starts."""
    yield sys.executable
    for name in ("python3.10", "python3.11", "python3.12", "python3.13"):
        path = shutil.which(name)
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            yield path


def test_it_needs_the_standard_library_and_the_files_that_its_page_copies(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "frameworks.md").read_text()
    for *sources, target in (line.split()[1:] for line in page.splitlines() if line.startswith("COPY ")):
        place = tmp_path / target.removeprefix("/app/")
        for source in map(ROOT.joinpath, sources):
            if source.is_dir():
                shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(exist_ok=True)
                shutil.copy(source, place)
    environment = spec([1, 2], pool=1, index=1)
    for python in _interpreters():
        command = ("--", python, "-c", "import os, sys; print(os.environ['RANK'])")
        done = launch(
            "--framework=torch",
            *command,
            environment=environment,
            python=(python, "-S", "-E"),
            folder=tmp_path,
        )
        assert (done.stdout, done.returncode) == ("2\n", 0), f"{python}: {done.stderr}"


def test_a_process_without_any_cluster_is_a_group_of_its_own() -> None:
    found = told("torch", {})
    assert (found["RANK"], found["WORLD_SIZE"], found["MASTER_ADDR"]) == ("0", "1", "127.0.0.1")
    assert 0 < int(found["MASTER_PORT"]) < 65536
    assert told("jax", {})["JAX_NUM_PROCESSES"] == "1"
    assert told("horovod", {}) == {}, "a replica alone needs nothing of it"


JAX_PROGRAM = """
import json
import jax
jax.distributed.initialize()
import jax.numpy as jnp
from jax.experimental import multihost_utils
found = multihost_utils.process_allgather(jnp.array([jax.process_index() + 1.0]))
print(json.dumps([jax.process_index(), jax.process_count(), jax.device_count(), found.ravel().tolist()]))
"""


@pytest.mark.slow
def test_two_jax_processes_initialize_without_arguments_and_gather_from_each_other() -> None:
    pytest.importorskip("jax")
    members = {f"workerpool{pool}": [f"127.0.0.1:{port}"] for pool, port in enumerate(free_ports(2))}
    chief, worker = (spec_of(members, name, 0) for name in members)
    quiet = {"HOME": str(ROOT), "JAX_PLATFORMS": "cpu"}
    command = ("--framework=jax", "--", sys.executable, "-c", JAX_PROGRAM)
    with (
        started(*command, environment=worker | quiet) as second,
        started(*command, environment=chief | quiet) as first,
    ):
        printed = [each.communicate(timeout=ENDS_WITHIN_S) for each in (first, second)]
        assert [each.returncode for each in (first, second)] == [0, 0], printed
    printed_values = [json.loads(out.splitlines()[-1]) for out, _ in printed]  # gloo has its own lines before
    assert printed_values == [[rank, 2, 2, [1.0, 2.0]] for rank in range(2)]
