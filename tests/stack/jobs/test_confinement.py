"""A hostile replica of an enforcing stack sees nothing of this machine and of other jobs."""

import http.server
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from trainstack.gateway.authority import Authority
from trainstack.gateway.identity import WorkloadIdentities
from trainstack.gateway.proxy import Gateway
from trainstack.iam import Grant, Grants
from trainstack.iam.principals import Tokens
from trainstack.sandbox.probe import repair

from .conftest import WAYS, Stack, container, run_stack

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


@pytest.fixture
def index() -> Iterator[int]:
    """The port of a package index of this machine's user."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"packages")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def connected(start: Callable[..., Any], tmp_path: Path, index: int) -> Iterator[Stack]:
    """A stack whose replicas have identities and a gateway."""
    tokens = Tokens()
    authority = Authority(tmp_path / "gateway")
    gateway = Gateway(authority=authority, tokens=tokens, own_hosts={("localhost", index)})
    identities = WorkloadIdentities(
        tokens=tokens, project_id="p1", project_number="1", gateway_port=8888, trust=authority.trust, gateway=gateway
    )  # fmt: skip
    with start(isolation="enforced", tokens=tokens, identities=identities) as running:
        yield running


ASKED = """
import base64, http.client, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
def connected(target):
    client = http.client.HTTPConnection(proxy.hostname, proxy.port, timeout=60)
    credentials = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
    client.putrequest("CONNECT", target, skip_host=True)
    client.putheader("Proxy-Authorization", f"Basic {credentials}")
    client.endheaders()
    return client.getresponse().status
"""


def test_a_job_reaches_no_port_of_this_machine_directly_or_by_the_gateway(connected: Stack) -> None:
    port = urlsplit(connected.url).port
    names = ("127.0.0.1", "127.9.9.9", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "169.254.169.254", socket.gethostname())  # fmt: skip
    program = f"""
import socket
print(outcome(lambda: socket.create_connection(("127.0.0.1", {port}), 60)))
print(outcome(lambda: socket.create_connection(("192.0.2.1", 443), 60)))
print({{connected(name + ":{port}") for name in {names}}})
"""
    assert said(connected, ASKED + program) == ["ConnectionRefusedError", "OSError", "{403}"]


def test_a_job_reaches_the_gateway_its_metadata_server_and_the_users_index_only(
    connected: Stack, index: int
) -> None:
    program = """
import urllib.request
rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
print(sorted(int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == "0A"))
print(int(os.environ["GCE_METADATA_HOST"].rpartition(":")[2]))
"""
    program += (
        f'print(urllib.request.urlopen("http://localhost:{index}/simple/", timeout=60).read().decode())'
    )
    job = connected.submit(
        container("-c", "import time; time.sleep(600)", command=["python"]), service_account=OTHER
    )
    connected.until(job.name, lambda _job: "Job is running." in connected.service_lines(job.name))
    listening, metadata, answer = said(connected, ASKED + program)
    connected.jobs.cancel_custom_job(name=job.name)
    connected.ended(job.name)
    assert listening == str(sorted([8888, int(metadata), index]))
    assert answer == "packages"


def test_replicas_of_one_job_reach_each_other(connected: Stack) -> None:
    program = """
import json, os, socket
cluster = json.loads(os.environ["TF_CONFIG"])
host, _, port = cluster["cluster"]["chief"][0].rpartition(":")
if cluster["task"]["type"] == "chief":
    with socket.create_server((host, int(port))) as server:
        print(server.accept()[0].recv(100).decode())
else:
    while True:
        try:
            socket.create_connection((host, int(port)), 60).sendall(b"hello")
            break
        except ConnectionRefusedError:
            pass
"""
    pool = container("-c", program, command=["python"])
    job = connected.submit(pool, pool)
    assert connected.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", connected.texts(job.name)
    assert connected.texts(job.name, "workerpool0-0") == ["hello"]


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


def test_a_job_reads_and_writes_the_buckets_and_folders_of_its_account(stack: Stack) -> None:
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


@pytest.mark.parametrize("state", [".trainmaster", "runs/local/.trainmaster"])
def test_an_image_that_copies_a_folder_with_the_state_in_it_does_not_show_the_state(
    tmp_path: Path, state: str
) -> None:
    folder = tmp_path / "project"
    (folder / "runs" / "local").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM python:3\nWORKDIR /app\nCOPY . .\n")
    (folder / "runs" / "local" / "kept").touch()
    program = "import os; print(sorted(each for at, _, files in os.walk('.') for each in files))"
    with run_stack(folder / state, isolation="enforced", images={"example.com/p": folder}) as stack:
        job = stack.submit(container("-c", program, command=["python"], image="example.com/p"))
        assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
        assert stack.texts(job.name, "workerpool0-0") == ["['Dockerfile', 'kept']"]


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"),
        ("kernel/unprivileged_userns_clone", "0", "sudo sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
        ("user/max_user_namespaces", "100", "start it with --privileged"),
    ],
)  # fmt: skip
def test_a_machine_that_cannot_confine_is_reported_with_the_setting_to_change(
    tmp_path: Path, setting: str, value: str, words: str
) -> None:
    path = tmp_path / setting
    path.parent.mkdir()
    path.write_text(f"{value}\n")
    assert words in repair(tmp_path, is_root=False)
    assert "start it with --privileged" in repair(tmp_path, is_root=True)
