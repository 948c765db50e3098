"""Our Logging on our Pub/Sub, and the official clients on both."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.logging.stack import Stack, connected
from trainstack import logging, pubsub

collect_ignore = [] if shutil.which("gcloud") else ["test_gcloud.py"]


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with (
        pubsub.serve(tmp_path / "pubsub") as address,
        logging.serve(tmp_path / "logging", address) as url,
        connected(url, address) as clients,
    ):
        yield clients
