"""Horovod's processes find each other: the chief serves, the others wait for it, and it ends with the chief."""

import json
import socket
import subprocess
import sys
import time
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from trainer.launch.rendezvous import LARGEST_VALUE
from trainstack.ports import free_ports

from .launched import ENDS_WITHIN_S, ROOT, launch, spec_of, started

WAIT = ("--framework=horovod", "--", sys.executable, "-c", "print('up', flush=True); input()")
DONE = ("--framework=horovod", "--", sys.executable, "-c", "print('ran')")


def two_replicas() -> tuple[int, dict[str, str], dict[str, str]]:
    """The chief's port, and the environments of chief and worker."""
    chief, worker = free_ports(2)
    members = {"workerpool0": [f"127.0.0.1:{chief}"], "workerpool1": [f"127.0.0.1:{worker}"]}
    return chief, spec_of(members, "workerpool0", 0), spec_of(members, "workerpool1", 0)


def answer(port: int, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
    request = Request(f"http://127.0.0.1:{port}{path}", data=body, method=method)
    try:
        with urlopen(request, timeout=10) as found:
            return found.status, found.read()
    except HTTPError as error:
        with error:
            return error.code, error.read()


def announced(port: int, length: int) -> int:
    """The status of a value that is announced and never sent."""
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest("PUT", "/large/0")
        connection.putheader("Content-Length", str(length))
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_the_chief_serves_a_store_of_values_until_its_command_ends() -> None:
    port, chief, _ = two_replicas()
    with started(*WAIT, environment=chief, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        assert answer(port, "GET", "/global_/0") == (404, b"")
        assert answer(port, "PUT", "/global_/0", b"\x00address\xff") == (200, b"")
        assert answer(port, "GET", "/global_/0") == (200, b"\x00address\xff")
        assert answer(port, "GET", "/cross_0/0")[0] == 404
        assert answer(port, "PUT", "/global_/0", b"") == (200, b"")
        assert answer(port, "GET", "/global_/0") == (200, b"")
        assert answer(port, "DELETE", "/global_/0") == (200, b"")
        assert answer(port, "GET", "/global_/0")[0] == 404
        assert announced(port, LARGEST_VALUE + 1) == 400
        process.communicate("\n", timeout=ENDS_WITHIN_S)  # the output ends with the command
        assert process.returncode == 0
    deadline = time.monotonic() + ENDS_WITHIN_S
    while _is_served(port):
        assert time.monotonic() < deadline, "the rendezvous outlived its command"
        time.sleep(0.05)


def test_a_worker_that_starts_first_waits_for_the_chief() -> None:
    _, chief, worker = two_replicas()
    with started(*DONE, environment=worker) as first:
        assert first.stderr is not None
        assert "This is worker-0" in first.stderr.readline()
        assert first.poll() is None
        with started(*WAIT, environment=chief, stdin=subprocess.PIPE) as second:
            printed, _ = first.communicate(timeout=ENDS_WITHIN_S)
            assert (printed, first.returncode) == ("ran\n", 0)
            second.communicate("\n", timeout=ENDS_WITHIN_S)
            assert second.returncode == 0


def test_a_chief_that_never_comes_is_134_and_the_command_does_not_run() -> None:
    port, _, worker = two_replicas()
    done = launch("--peers_within_s=0.2", *DONE, environment=worker)
    assert (done.returncode, done.stdout) == (134, "")
    assert f"did not serve Horovod's rendezvous at 127.0.0.1:{port} within 0.2 s" in done.stderr


def test_a_taken_port_is_reported_and_exits_with_134() -> None:
    port, chief, _ = two_replicas()
    with socket.create_server(("127.0.0.1", port)):
        done = launch("--peers_within_s=0.2", *DONE, environment=chief)
    assert (done.returncode, done.stdout) == (134, "")
    assert f"Cannot serve Horovod's rendezvous on port {port}" in done.stderr


def test_a_chief_that_is_started_again_waits_for_the_port_of_its_last_attempt() -> None:
    port, chief, _ = two_replicas()
    last_attempt = socket.create_server(("127.0.0.1", port))
    with last_attempt, started(*DONE, environment=chief) as process:
        assert process.stderr is not None
        assert "This is chief-0" in process.stderr.readline()
        last_attempt.close()
        printed, _ = process.communicate(timeout=ENDS_WITHIN_S)
        assert (printed, process.returncode) == ("ran\n", 0)


def test_a_command_that_is_not_there_leaves_no_rendezvous_behind() -> None:
    port, chief, _ = two_replicas()
    assert launch("--framework=horovod", "--", "no-such-program", environment=chief).returncode == 127
    deadline = time.monotonic() + ENDS_WITHIN_S
    while _is_served(port):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _is_served(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


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
    _, chief, worker = two_replicas()
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
