"""Two Pub/Sub servers behind one fixture: ours, and Google's own emulator where the machine has it."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.pubsub.clients import Clients, connected
from tests.stack.waiting import wait_until
from trainstack import pubsub


def _official_jar() -> Path | None:
    """The emulator that the Cloud SDK on the path brings, if it and a Java are here."""
    gcloud = shutil.which("gcloud")
    root = os.environ.get("CLOUDSDK_ROOT_DIR") or (gcloud and Path(gcloud).resolve().parents[1])
    if not root or not shutil.which("java"):
        return None
    jars = sorted(
        (Path(root) / "platform" / "pubsub-emulator" / "lib").glob("cloud-pubsub-emulator-*-all.jar")
    )
    return jars[-1] if jars else None


_JAR = _official_jar()
BOTH = ["ours", *(["official"] if _JAR else [])]


@contextlib.contextmanager
def _official(jar: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    command = ["java", "-jar", str(jar), "--host=127.0.0.1", f"--port={port}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _listens(port), f"the official emulator on port {port}", within_s=30)
        yield f"127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clients]:
    with pubsub.serve(tmp_path_factory.mktemp("pubsub")) as address, connected("ours", address) as clients:
        yield clients


@pytest.fixture(scope="session")
def official() -> Iterator[Clients]:
    assert _JAR is not None
    with _official(_JAR) as address, connected("official", address) as clients:
        yield clients


@pytest.fixture(params=BOTH)
def either(request: pytest.FixtureRequest) -> Clients:
    """Each server in turn: what both must do alike."""
    clients: Clients = request.getfixturevalue(request.param)
    return clients
