"""Our Logging on our Pub/Sub, and the official clients on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from emulators import logging, pubsub
from tests.wire.logging.stack import Stack, connected


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with (
        pubsub.serve(tmp_path / "pubsub") as address,
        logging.serve(tmp_path / "logging", address) as url,
        connected(url, address) as clients,
    ):
        yield clients
