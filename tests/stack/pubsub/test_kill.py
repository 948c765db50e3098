"""Everything whose call had returned survives a SIGKILL."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stack.pubsub.clients import Clients, connected


@contextlib.contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Clients]]:
    """The emulator as a separate process, with clients on it; killed at the end."""
    command = [sys.executable, "-m", "trainstack.pubsub", "--dir", str(folder)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            with connected("ours", line.strip().rpartition("=")[2]) as clients:
                yield process, clients
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_topics_subscriptions_and_unacknowledged_messages_come_back_after_a_kill(tmp_path: Path) -> None:
    with running(tmp_path) as (process, before):
        topic = before.topic()
        policy = {"dead_letter_topic": before.topic(), "max_delivery_attempts": 5}
        subscription = before.subscription(topic, filter="attributes:wanted", dead_letter_policy=policy)
        ids = before.publish(topic, *"abcdef", wanted="yes")
        before.publish(topic, "unwanted")
        received = before.pull(subscription)
        assert len(received) == 6
        before.ack(subscription, *received[:2])
        before.nack(subscription, received[2])
        process.kill()
        process.wait()
    with running(tmp_path) as (_, after):
        assert [one.name for one in after.publisher.list_topics(project="projects/p1")] != []
        again = after.pull(subscription)
        assert [one.message.message_id for one in again] == ids[2:]
        assert [one.delivery_attempt for one in again] == [2, 1, 1, 1]
        # An acknowledgement of a delivery made before the kill still counts.
        after.ack(subscription, received[3])
        after.nack(subscription, *again)
        assert {one.message.message_id for one in after.pull(subscription)} == {ids[2], ids[4], ids[5]}
        assert int(after.publish(topic, "new", wanted="yes")[0]) > int(ids[-1])
