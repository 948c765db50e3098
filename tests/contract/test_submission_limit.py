"""A submission ends within its limit, however slow the service, and sends nothing afterwards."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

import pytest

from tests.contract.proxy import Proxy
from tests.contract.submissions import CREATE, submission
from tests.contract.world import PROJECT, REGION
from trainmaster.orchestrator.adapters import vertex as vertex_adapter
from trainmaster.orchestrator.adapters.job_messages import message_of
from trainmaster.orchestrator.adapters.total_limit import Deadline, LimitPassed, within
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.adapters.vertex_clients import TIMEOUT_S
from trainmaster.orchestrator.core.errors import SubmissionUnknown
from trainmaster.orchestrator.flows.services import SUBMIT_NEEDS


@contextmanager
def dripping(seconds: float) -> Iterator[tuple[str, list[bytes]]]:
    """A server that sends its response byte by byte, each well within the timeout of a read."""
    asked: list[bytes] = []
    over = threading.Event()

    def serve(listener: socket.socket) -> None:
        try:
            connection, _ = listener.accept()
        except TimeoutError:  # no client connected
            return
        with connection, suppress(OSError):
            asked.append(connection.recv(65536))
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 4000\r\n\r\n" + b" " * 4000:
                connection.sendall(bytes([byte]))
                if over.wait(seconds):
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(30)
        thread = threading.Thread(target=serve, args=(listener,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", asked
        finally:
            over.set()
            thread.join()


def test_an_answer_that_drips_ends_within_the_submissions_whole_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reads would take three minutes in all, and no single one would time out."""
    monkeypatch.setattr(vertex_adapter, "TIMEOUT_S", 3.0)
    with dripping(0.05) as (url, asked):
        adapter = VertexJobs(project=PROJECT, endpoint=url)
        adapter.prepare(REGION)
        with pytest.raises(SubmissionUnknown, match="within 3 s"):
            adapter.submit(submission())
        assert asked[0].startswith(CREATE.encode())
    joined("within-limit")
    adapter._client(REGION).transport.close()


def test_nothing_is_sent_once_the_limit_has_passed(vertex: VertexJobs, jobs_proxy: Proxy) -> None:
    """A process that was paused while it connected wakes up after its limit."""
    asked = submission()
    message = message_of(asked)
    client = vertex._client(REGION)

    def create_late() -> object:
        while time.monotonic() < deadline.at_s:
            time.sleep(0.01)
        return client.create_custom_job(parent=asked.parent, custom_job=message, timeout=5.0, retry=None)

    deadline = Deadline.after(0.1)
    with pytest.raises(LimitPassed):
        within(deadline, create_late)
    joined("within-limit")
    assert jobs_proxy.passed == []


def joined(name: str) -> None:
    """Wait for every thread of this name."""
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(30)
            assert not thread.is_alive()


def test_the_whole_limit_of_a_submission_fits_in_what_a_lease_must_have_left() -> None:
    assert timedelta(seconds=TIMEOUT_S) < SUBMIT_NEEDS
