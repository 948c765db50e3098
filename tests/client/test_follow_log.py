"""Following the log of a run, on real servers, through restarts of the stack's services."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.client.served import Served, run_record, served_context
from trainmaster.client.clients import Clients
from trainmaster.client.find import find_run
from trainmaster.client.logs.follow import RunLog, look_until_over
from trainmaster.client.stack import NoStack
from trainmaster.local import logging


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path) as served:
        running(served)
        yield served


def running(served: Served) -> None:
    job = {"name": "projects/1/locations/us-central1/customJobs/7", "state": "JOB_STATE_RUNNING"}
    served.write("ledger", "runs/trained.json", run_record(run_id="trained", state="running", job=job))


def test_a_restart_of_the_logging_service_is_survived(served: Served, tmp_path: Path) -> None:
    stop = threading.Event()
    with logging.serve(tmp_path / "logging") as url:
        clients = Clients(replace(served.clients.context, logging_host=url))
        followed = look_until_over(clients.context, RunLog(clients, find_run(clients, "trained")))
        assert next(followed) == []

    def serve_again() -> None:
        with logging.serve(tmp_path / "logging", port=urlsplit(url).port or 0):
            stop.wait()

    restarted = threading.Timer(1, serve_again)
    restarted.start()
    try:
        with clients:
            assert next(followed) == []
    finally:
        stop.set()
        restarted.join()


def test_a_stopped_stack_ends_the_following_and_says_how_to_start_one(served: Served, tmp_path: Path) -> None:
    with logging.serve(tmp_path / "logging") as url:
        clients = Clients(replace(served.clients.context, logging_host=url))
        followed = look_until_over(clients.context, RunLog(clients, find_run(clients, "trained")))
        assert next(followed) == []
    (tmp_path / ".trainmaster/stack.env").unlink()
    with clients, pytest.raises(NoStack, match="was stopped"):
        next(followed)
