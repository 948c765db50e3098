"""How long training waits for a checkpoint, against how long its files take to the bucket.

python bench/checkpoint_save.py [--megabytes 307] [--megabytes_per_s 50] [--rounds 3] [--limit 0.5]

A ResNet50 with Adam's two moments has 307 MB. The bucket is a directory in which a pipe takes the place of the
largest file, and is read at the given speed. The first save is left out: it also traces the function that writes.
"""

import argparse
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run as a file, from anywhere

from trainer.checkpoints.files import CHIEFS_FOLDER  # noqa: E402  # needs the line above
from trainer.checkpoints.upload import Uploads  # noqa: E402
from trainer.replicas.cluster import ClusterSpec  # noqa: E402
from trainer.replicas.preemption import Preemption  # noqa: E402

CHUNK_BYTES = 1 << 20
VARIABLES = 48
FLOAT_BYTES = 4


class Unasked(Preemption):
    """No SIGTERM arrives here."""

    def __init__(self) -> None:
        pass

    @contextmanager
    def saving(self, done: int) -> Iterator[None]:  # noqa: ARG002 - the overridden signature
        yield


def saver_of(root: Path, uploads: Uploads, megabytes: int) -> Any:
    import tensorflow as tf

    from trainer.checkpoints.saver import Saver

    model = tf.Module()
    model.metrics = ()
    each = megabytes * 1_000_000 // FLOAT_BYTES // VARIABLES
    model.variables_of_size = [tf.Variable(tf.random.uniform([each])) for _ in range(VARIABLES)]
    (root / "scratch").mkdir()
    return Saver(
        model=model,
        checkpoints=root / "checkpoints",
        cluster=ClusterSpec(),
        scratch=root / "scratch",
        uploads=uploads,
        global_batch_size=1,
        trained_on={},
        io_device=None,
        wait_for_steps=lambda: None,
    )


def drain(pipe: Path, bytes_per_s: float) -> None:
    with pipe.open("rb") as reading:
        while chunk := reading.read(CHUNK_BYTES):
            time.sleep(len(chunk) / bytes_per_s)


def measured(saver: Any, number: int, bytes_per_s: float) -> tuple[float, float]:
    """Seconds until the save returned, and until the checkpoint was in the bucket."""
    pipe = saver.checkpoints / CHIEFS_FOLDER / f"ckpt-{number}.data-00000-of-00001"
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    draining = threading.Thread(target=drain, args=(pipe, bytes_per_s), daemon=True)
    draining.start()
    began = time.monotonic()
    saver.save(Unasked(), done=number, epoch=0, step=number)
    returned = time.monotonic()
    saver.uploads.finish()
    ended = time.monotonic()
    draining.join()
    return returned - began, ended - began


def run(megabytes: int, bytes_per_s: float, rounds: int, limit: float) -> bool:
    """Print the table; whether the limit is kept."""
    with tempfile.TemporaryDirectory() as name, Uploads() as uploads:
        saver = saver_of(Path(name), uploads, megabytes)
        found = [measured(saver, number, bytes_per_s) for number in range(1, rounds + 2)][1:]
    print(f"{'':<10}{'training waits':>16}{'in the bucket':>16}{'ratio':>8}")
    for number, (waits, whole) in enumerate(found, 1):
        print(f"{f'save {number}':<10}{waits:>14.2f} s{whole:>14.2f} s{waits / whole:>8.2f}")
    ratio = statistics.median(waits / whole for waits, whole in found)
    kept = ratio <= limit
    print(f"median ratio {ratio:.2f}, limit {limit:.2f}: {'kept' if kept else 'NOT kept'}")
    return kept


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=307)
    parser.add_argument("--megabytes_per_s", type=float, default=50.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=0.5)
    given = parser.parse_args()
    sys.exit(0 if run(given.megabytes, given.megabytes_per_s * 1e6, given.rounds, given.limit) else 1)
