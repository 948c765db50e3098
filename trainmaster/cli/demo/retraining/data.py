"""The data of the retraining demo: a few pictures for the first champion, then two bursts of 200 files.

Every data set has the same clean test split. The second burst has the first one's pictures, but half of the
labels to learn from are wrong.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from trainmaster.client.clients import Target, storage_client

DATASET = "horses_or_humans"
BURST_FILES = 200
UPLOADERS = 8
DONE = "_SUCCESS"  # ends a delivery, as Hadoop's and Spark's writers end theirs
_ALL = (f"--dataset={DATASET}", "--examples=196")  # 147 to learn from and 49 to test on
_SMALL_FILES = (*_ALL, "--examples_per_file=1")  # 196 files of pictures, 3 that describe them, and DONE

FIRST = (*_ALL, "--train_examples=40")
BURSTS = (_SMALL_FILES, (*_SMALL_FILES, "--label_noise=0.5"))


def burst_prefix(number: int) -> str:
    """The folder of a burst in the data bucket, with its slash."""
    return f"horses/burst-{number}/"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A burst as the bucket has it: from the first object's creation to DONE's, which is None until it is there."""

    prefix: str  # gs:// URI of its folder, with its slash
    files: int
    first_at: datetime | None = None
    done_at: datetime | None = None

    @property
    def done_uri(self) -> str:
        return f"{self.prefix}{DONE}"


def delivery_in(target: Target, bucket: str, number: int) -> Delivery:
    """What has arrived of a burst."""
    prefix = burst_prefix(number)
    created = {
        blob.name: blob.time_created for blob in storage_client(target).list_blobs(bucket, prefix=prefix)
    }
    return Delivery(
        prefix=f"gs://{bucket}/{prefix}",
        files=len(created),
        first_at=min(created.values(), default=None),
        done_at=created.get(f"{prefix}{DONE}"),
    )


def upload(target: Target, bucket: str, number: int, folder: Path) -> None:
    """Everything in `folder`, by several threads at once, and DONE after all of it."""
    from google.cloud.storage import transfer_manager

    destination = storage_client(target).bucket(bucket)
    prefix = burst_prefix(number)
    files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
    transfer_manager.upload_many_from_filenames(
        destination,
        files,
        source_directory=str(folder),
        blob_name_prefix=prefix,
        raise_exception=True,
        worker_type=transfer_manager.THREAD,
        max_workers=UPLOADERS,
    )
    destination.blob(f"{prefix}{DONE}").upload_from_string(b"")
