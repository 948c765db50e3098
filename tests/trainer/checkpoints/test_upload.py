"""Uploads in the background: one at a time, in order, and finished before the process ends."""

import sys
import threading
from collections.abc import Iterator

import pytest

from tests.processes import run_to_end
from tests.trainer.conftest import ROOT
from trainer.checkpoints.upload import Uploads

DEADLINE_S = 60


class Held:
    """An upload that lasts until it is released."""

    def __init__(self) -> None:
        self.began, self.released = threading.Event(), threading.Event()

    def __call__(self) -> bool:
        self.began.set()
        return self.released.wait(DEADLINE_S)


@pytest.fixture
def uploads() -> Iterator[Uploads]:
    with Uploads() as made:
        yield made


def test_waiting_says_whether_the_upload_succeeded(uploads: Uploads) -> None:
    assert uploads.finish(), "there was none"
    held = Held()
    uploads.start(held)
    assert not uploads.finish(0)
    held.released.set()
    assert uploads.finish()
    uploads.start(lambda: False)
    assert not uploads.finish()


LOSES = """
import threading, time
from types import SimpleNamespace
from trainer.replicas.ending import end_for_loss
from trainer.checkpoints.upload import Uploads

def upload():
    lost.wait()
    time.sleep(1.5)  # longer than the exit takes without an upload
    print("uploaded", flush=True)
    return True

lost = threading.Event()
uploads = Uploads()
uploads.start(upload)
lost.set()
end_for_loss(SimpleNamespace(replica="chief-0"), "worker-0", "it is not running")
"""


@pytest.mark.slow
def test_a_replica_that_loses_a_peer_finishes_its_upload_before_it_exits() -> None:
    done = run_to_end([sys.executable, "-c", LOSES], cwd=ROOT, timeout=60)
    assert done.returncode == 134, done.stderr
    assert done.stdout.splitlines()[-1] == "uploaded"
