"""gcloud as a second opinion; collected only where it is installed."""

import random
from pathlib import Path

import pytest
from google.cloud import storage

from tests.stack.gcloud import Gcloud, gcloud_of


@pytest.fixture
def gcloud(url: str, tmp_path: Path) -> Gcloud:
    return gcloud_of("storage", api="STORAGE", url=f"{url}/storage/v1/", project="project-1", folder=tmp_path)


@pytest.mark.slow
def test_gcloud_copies_files_up_and_down_and_lists_them(
    bucket: storage.Bucket, gcloud: Gcloud, tmp_path: Path
) -> None:
    (tmp_path / "up.yaml").write_text("x: 1\n")
    (tmp_path / "big.bin").write_bytes(random.Random(1).randbytes(9 << 20))
    gcloud("cp", str(tmp_path / "up.yaml"), str(tmp_path / "big.bin"), f"gs://{bucket.name}/in/")
    assert bucket.blob("in/up.yaml").download_as_bytes() == b"x: 1\n"
    assert gcloud("ls", f"gs://{bucket.name}/**").split() == [
        f"gs://{bucket.name}/in/big.bin",
        f"gs://{bucket.name}/in/up.yaml",
    ]
    gcloud("cp", f"gs://{bucket.name}/in/big.bin", str(tmp_path / "down.bin"))
    assert (tmp_path / "down.bin").read_bytes() == (tmp_path / "big.bin").read_bytes()


@pytest.mark.slow
def test_gcloud_changes_a_bucket_and_who_may_use_it(bucket: storage.Bucket, gcloud: Gcloud) -> None:
    url = f"gs://{bucket.name}"
    gcloud(
        "buckets", "update", url, "--update-labels=a=b", "--soft-delete-duration=7d", "--retention-period=5s"
    )
    bucket.reload()
    assert (bucket.labels, bucket.retention_period) == ({"a": "b"}, 5)
    assert bucket.soft_delete_policy.retention_duration_seconds == 7 * 86400
    gcloud("buckets", "update", url, "--clear-labels", "--clear-retention-period")
    reader = ("--member=user:a@b.c", "--role=roles/storage.objectViewer")
    assert "user:a@b.c" in gcloud("buckets", "add-iam-policy-binding", url, *reader)
    assert "user:a@b.c" not in gcloud("buckets", "remove-iam-policy-binding", url, *reader)
    bucket.reload()
    assert (bucket.labels, bucket.retention_period) == ({}, None)
