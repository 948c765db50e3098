"""One emulator for most tests of a module, a separate bucket for each, and the official client."""

import itertools
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from trainstack.storage import serve

collect_ignore = [] if shutil.which("gcloud") else ["test_gcloud.py"]

Named = Callable[..., storage.Bucket]
_numbers = itertools.count()


@contextmanager
def client_of(url: str) -> Iterator[storage.Client]:
    client = storage.Client(
        project="project-1", credentials=AnonymousCredentials(), client_options={"api_endpoint": url}
    )
    try:
        yield client
    finally:
        client.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="module")
def url(directory: Path) -> Iterator[str]:
    with serve(directory) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[storage.Client]:
    with client_of(url) as connected:
        yield connected


@pytest.fixture(scope="module")
def http(url: str) -> Iterator[httpx.Client]:
    """For requests that the official client would not send."""
    with httpx.Client(base_url=url, timeout=60) as plain:
        yield plain


@pytest.fixture
def bucket(client: storage.Client) -> storage.Bucket:
    return client.create_bucket(f"bucket-{next(_numbers)}")


@pytest.fixture
def folder(directory: Path, bucket: storage.Bucket) -> Path:
    """The bucket's plain files."""
    return directory / "buckets" / str(bucket.name)


@pytest.fixture
def named(client: storage.Client, http: httpx.Client) -> Named:
    """Makes a bucket with these fields."""

    def make(**fields: object) -> storage.Bucket:
        name = f"bucket-{next(_numbers)}"
        http.post("/storage/v1/b?project=p", json={"name": name, **fields}).raise_for_status()
        return client.bucket(name)

    return make
