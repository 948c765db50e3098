"""The data of the retraining demo: a few pictures for the first champion, then two bursts of 200 files.

Every data set has the same clean test split. The second burst has the first one's pictures, but half of the
labels to learn from are wrong.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trainmaster.client.clients import Target, storage_client

DATASET = "horses_or_humans"
BURST_FILES = 200
UPLOADERS = 8
DONE = "_SUCCESS"  # ends a delivery, as Hadoop's and Spark's writers end theirs
_ALL = ("--examples=392",)  # 294 to learn from and 98 to test on
_SMALL_FILES = (*_ALL, "--examples_per_file=2")  # 196 files of pictures, 3 that describe them, and DONE

FIRST = (*_ALL, "--train_examples=40")
BURSTS = (_SMALL_FILES, (*_SMALL_FILES, "--label_noise=0.5"))


@dataclass(frozen=True, kw_only=True)
class Burst:
    """A delivery that has arrived whole: from the first object's creation to DONE's, by the bucket's clock."""

    prefix: str  # gs:// URI of its folder, with its slash
    files: int
    size_bytes: int
    first_at: datetime
    done_at: datetime
    done_uri: str


def uploaded(target: Target, bucket: str, prefix: str, folder: Path, told: Callable[[int], None]) -> Burst:
    """Everything in `folder`, uploaded by several threads at once, and DONE after all of it.

    `told` is called by those threads with how many have arrived.
    """
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    client = storage_client(target)
    destination = client.bucket(bucket)

    def upload(file: Path) -> datetime:
        blob = destination.blob(f"{prefix}{file.relative_to(folder).as_posix()}")
        blob.upload_from_filename(str(file))
        created_at: datetime = blob.time_created
        return created_at

    created: list[datetime] = []
    with ThreadPoolExecutor(UPLOADERS) as pool:
        for at in pool.map(upload, files):
            created.append(at)
            told(len(created))
    done = destination.blob(f"{prefix}{DONE}")
    done.upload_from_string(b"")
    told(len(files) + 1)
    client.close()
    return Burst(
        prefix=f"gs://{bucket}/{prefix}",
        files=len(files) + 1,
        size_bytes=sum(file.stat().st_size for file in files),
        first_at=min(created),
        done_at=done.time_created,
        done_uri=f"gs://{bucket}/{prefix}{DONE}",
    )
