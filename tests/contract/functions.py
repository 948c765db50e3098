"""A Cloud Function running in a separate process under functions-framework."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import httpx


@dataclass(kw_only=True)
class Function:
    """One running function, and how events reach it."""

    url: str
    process: subprocess.Popen[bytes]
    log: TextIO

    def kill(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def output(self) -> str:
        self.log.seek(0)
        return self.log.read()

    def deliver(
        self, data: object, *, kind: str = "google.cloud.storage.object.v1.finalized"
    ) -> httpx.Response:
        headers = {
            "ce-id": "1",
            "ce-source": "//storage.googleapis.com/projects/_/buckets/b",
            "ce-specversion": "1.0",
            "ce-type": kind,
            "ce-time": "2026-01-01T00:00:00Z",
        }
        return httpx.post(self.url, json=data, headers=headers, timeout=120)

    def publish(self, message: Mapping[str, object]) -> httpx.Response:
        return self.deliver({"message": message}, kind="google.cloud.pubsub.topic.v1.messagePublished")


@contextmanager
def running(entry_point: str, source: Path, environment: Mapping[str, str], port: int) -> Iterator[Function]:
    command = [
        *(sys.executable, "-m", "functions_framework", "--signature-type", "cloudevent"),
        *("--target", entry_point, "--source", str(source / "main.py")),
        *("--host", "127.0.0.1", "--port", str(port)),
    ]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command, env=dict(environment), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        function = Function(url=f"http://127.0.0.1:{port}/", process=process, log=log)
        try:
            until(lambda: answers(function.url) or process.poll() is not None, "the function answers")
            yield function
        finally:
            function.kill()


def answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=60).status_code == 405  # the framework takes POST alone
    except httpx.TransportError:
        return False


def until(holds: Callable[[], bool], what: str, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what}"
        time.sleep(0.02)
