"""What a hostile replica of an enforcing stack finds of this machine and of other jobs: nothing."""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trainmaster.local.iam import Grant, Grants
from trainmaster.local.sandbox.probe import obstacle, repair

from .conftest import WAYS, Stack, container

pytestmark = pytest.mark.skipif(len(WAYS) == 1, reason="this machine does not allow namespaces")

MINE, OTHER = "mine@p1.iam.gserviceaccount.com", "other@p1.iam.gserviceaccount.com"
READ = frozenset({"storage.objects.get", "storage.objects.list"})
ROLES = {
    "viewer": READ,
    "user": READ | {"storage.objects.create", "storage.objects.delete", "storage.objects.update"},
}
BUCKETS = ("data", "models", "ledger")


def grants() -> Grants:
    """Both accounts may read `data`, and write their own folder of `models`."""
    rows = [("data", "viewer", "", account) for account in (MINE, OTHER)]
    rows += [("models", "user", "mine/", MINE), ("models", "user", "other/", OTHER)]
    return Grants(
        project="p1",
        project_number="1",
        grants=[
            Grant(member=f"serviceAccount:{account}", role=role, resource=f"projects/_/buckets/{bucket}", folder=folder)
            for bucket, role, folder, account in rows
        ],
        roles=ROLES,
        buckets=BUCKETS,
    )  # fmt: skip


@pytest.fixture
def stack(start: Callable[..., Any], tmp_path: Path) -> Iterator[Stack]:
    for bucket in (*BUCKETS, "users-own"):
        (tmp_path / "buckets" / bucket).mkdir(parents=True)
    for path in ("data/set", "models/other/secret", "ledger/record"):
        (tmp_path / "buckets" / path).parent.mkdir(exist_ok=True)
        (tmp_path / "buckets" / path).write_text("content")
    with start(isolation="enforced", grants=grants()) as running:
        yield running


def said(stack: Stack, program: str, *, account: str = MINE) -> list[str]:
    """The lines of a job that runs this Python program, which must succeed."""
    helpers = (
        "import os, pathlib\n"
        "def outcome(work):\n"
        "    try: return work()\n"
        "    except OSError as error: return type(error).__name__\n"
    )
    job = stack.submit(container("-c", helpers + program, command=["python"]), service_account=account)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    return stack.texts(job.name, "workerpool0-0")


def test_a_job_sees_the_buckets_and_folders_of_its_account_and_writes_those_that_it_may_write(
    stack: Stack,
) -> None:
    program = """
print(sorted(os.listdir("/gcs")), sorted(os.listdir("/gcs/models")))
print(pathlib.Path("/gcs/data/set").read_text())
for name in ("models/mine/model", "users-own/x", "data/x", "models/other/x", "ledger/x", "x"):
    print(name, outcome(lambda: pathlib.Path("/gcs", name).write_text("hello")))
"""
    assert said(stack, program) == [
        "['data', 'models', 'users-own'] ['mine']",
        "content",
        "models/mine/model 5",
        "users-own/x 5",
        "data/x OSError",
        "models/other/x FileNotFoundError",
        "ledger/x FileNotFoundError",
        "x OSError",
    ]
    assert (stack.buckets / "models" / "mine" / "model").read_text() == "hello"
    assert [path.name for path in (stack.buckets / "data").iterdir()] == ["set"]


def test_a_job_sees_neither_the_state_folder_nor_the_users_files_nor_a_shared_tmp(
    stack: Stack, tmp_path: Path
) -> None:
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="of-the-machine-") as file:
        files = [tmp_path / "state" / "jobs.sqlite", Path(file.name), Path(__file__)]
        files += [path for path in Path.home().iterdir() if path.is_file()]
        assert all(path.exists() for path in files)
        program = f"print([path for path in {[str(path) for path in files]} if os.path.exists(path)])"
        assert said(stack, program) == ["[]"]


def test_a_job_sees_no_process_but_its_own_and_cannot_change_the_machine(stack: Stack) -> None:
    program = """
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
print(outcome(lambda: pathlib.Path("/proc/sys/kernel/core_pattern").write_text("x")))
print(outcome(lambda: os.mknod("/tmp/device", 0o60600, os.makedev(8, 0))))
print(outcome(lambda: os.chroot("/usr")))
print(outcome(lambda: pathlib.Path("/usr/x").write_text("x")), outcome(lambda: pathlib.Path("/etc/x").write_text("x")))
"""
    assert said(stack, program) == [
        "[1, 2]",
        *(["OSError"] if os.geteuid() == 0 else ["PermissionError"]),
        "PermissionError",
        "PermissionError",
        "OSError OSError",
    ]


def test_a_job_can_use_pseudo_terminals_and_shared_memory_of_its_own(stack: Stack) -> None:
    program = """
import multiprocessing.shared_memory
memory = multiprocessing.shared_memory.SharedMemory(create=True, size=64)
first, second = os.openpty()
print(os.listdir("/dev/shm") == [memory.name], os.ttyname(second))
memory.close(); memory.unlink()
"""
    assert said(stack, program) == ["True /dev/pts/0"]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
        ("user/max_user_namespaces", "100", "start it with --privileged"),
    ],
)  # fmt: skip
def test_a_machine_that_cannot_confine_says_what_to_change(
    tmp_path: Path, setting: str, value: str, words: str
) -> None:
    path = tmp_path / setting
    path.parent.mkdir()
    path.write_text(f"{value}\n")
    assert words in repair(tmp_path)


def test_this_machine_has_no_obstacle() -> None:
    assert obstacle() == ""
