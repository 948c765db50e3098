"""The data of the retraining demo: two bursts of 200 files, of whose first the first champion has seen a few pictures.

Both have the same clean test split. The second burst has the first one's pictures, but half of the labels to learn
from are wrong.
"""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rich.console import Console

from trainmaster.cli.demo.stage import upload_all, write_dataset
from trainmaster.client.clients import storage_client
from trainmaster.client.context import Context

DATASET = "horses_or_humans"
BURST_FILES = 200
LISTED_MAX = 1000
DONE = "_SUCCESS"  # ends a delivery, as Hadoop's and Spark's writers end theirs


def write_bursts(console: Console, folder: Path) -> list[Path]:
    """The folders of both: 147 pictures to learn from and 49 to test on, each in a file, 3 that describe them, and DONE.

    Raises:
        DemoFailed: they could not be written.
    """
    clean, noisy = folder / "1", folder / "2"
    wrong = ("--label_noise=0.5", f"--mislabelled_dir={noisy}")
    write_dataset(console, clean, f"--dataset={DATASET}", "--examples=196", "--examples_per_file=1", *wrong)
    return [clean, noisy]


def burst_prefix(number: int) -> str:
    """The folder of a burst in the data bucket, with its slash."""
    return f"horses/burst-{number}/"


@dataclass(frozen=True, kw_only=True)
class Delivery:
    """A burst in the bucket, from the creation of its first object to that of DONE; None until DONE exists."""

    prefix: str  # gs:// URI of its folder, with its slash
    files: int
    first_at: datetime | None = None
    done_at: datetime | None = None

    @property
    def done_uri(self) -> str:
        return f"{self.prefix}{DONE}"


def read_delivery(target: Context, bucket: str, number: int) -> Delivery:
    """What has arrived of a burst."""
    prefix = burst_prefix(number)
    created = {
        blob.name: blob.time_created
        for blob in storage_client(target).list_blobs(bucket, prefix=prefix, max_results=LISTED_MAX)
    }
    return Delivery(
        prefix=f"gs://{bucket}/{prefix}",
        files=len(created),
        first_at=min(created.values(), default=None),
        done_at=created.get(f"{prefix}{DONE}"),
    )


def upload(target: Context, bucket: str, number: int, folder: Path) -> None:
    """Everything in `folder`, and DONE after all of it."""
    destination, prefix = storage_client(target).bucket(bucket), burst_prefix(number)
    upload_all(destination, prefix, folder)
    destination.blob(f"{prefix}{DONE}").upload_from_string(b"")
