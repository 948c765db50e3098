"""The local servers for the real adapters, and the adapters."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.contract.proxy import Proxy, proxy_to
from tests.contract.retraining import RuleWorld
from tests.contract.world import MODELS, PROJECT, START
from tests.fixtures import fixture_of
from tests.memory import ManualClock, MemoryObjects
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.adapters.vertex import VertexJobs
from trainmaster.orchestrator.ports.objects import Objects
from trainstack import pubsub, storage
from trainstack.process.ports import free_ports
from trainstack.vertex import Jobs, serve

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = "us-docker.pkg.dev/my-project/repo/program"
_numbers = itertools.count(1)
storage_url = fixture_of(storage.serve, scope="session")
pubsub_host = fixture_of(pubsub.serve, scope="session")


@pytest.fixture
def world() -> RuleWorld:
    """A deployment in memory as it is shipped, but without limits and caps; it may have rules."""
    return RuleWorld()


@pytest.fixture(scope="session")
def jobs_buckets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the buckets that exist for the service of jobs, which refuses outputs in others."""
    folder = tmp_path_factory.mktemp("buckets")
    (folder / MODELS).mkdir()
    return folder


@pytest.fixture(scope="session")
def jobs_url(tmp_path_factory: pytest.TempPathFactory, jobs_buckets: Path) -> Iterator[str]:
    service = Jobs(
        dir=tmp_path_factory.mktemp("jobs"),
        buckets_dir=jobs_buckets,
        images=lambda: {PROGRAM: ROOT / "tests" / "stack" / "jobs" / "images" / "program"},
        write_log=lambda _: None,
        project=PROJECT,
        grace_s=1.0,
    )
    with serve(service) as url:
        yield url


@pytest.fixture
def free_port() -> Callable[[], int]:
    """A port that was just free, for a server that cannot pick one itself."""
    return lambda: free_ports(1)[0]


@pytest.fixture
def storage_proxy(storage_url: str) -> Iterator[Proxy]:
    with proxy_to(storage_url) as proxy:
        yield proxy


@pytest.fixture
def jobs_proxy(jobs_url: str) -> Iterator[Proxy]:
    with proxy_to(jobs_url) as proxy:
        yield proxy


@pytest.fixture
def gcs(storage_proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsObjects]:
    """The real adapter, with its client's variable pointing to the emulator."""
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", storage_proxy.url)
    # The client reads a bucket's metadata in a separate thread, which may outlive the test.
    monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
    objects = GcsObjects(PROJECT)
    yield objects
    objects._client.close()


@pytest.fixture
def new_bucket(gcs: GcsObjects) -> Callable[[], str]:
    def made() -> str:
        name = f"bucket-{next(_numbers)}"
        gcs._client.create_bucket(name)
        return name

    return made


@pytest.fixture
def vertex(jobs_proxy: Proxy) -> Iterator[VertexJobs]:
    adapter = VertexJobs(project=PROJECT, endpoint=jobs_proxy.url)
    yield adapter
    for client in adapter._clients.values():
        client.transport.close()


@pytest.fixture(params=["memory", "gcs"])
def objects(request: pytest.FixtureRequest) -> Objects:
    """Every object store: in memory, and Cloud Storage's client against the emulator."""
    if request.param == "memory":
        return MemoryObjects(ManualClock(START))
    adapter: Objects = request.getfixturevalue("gcs")
    return adapter


@pytest.fixture
def bucket(objects: Objects, request: pytest.FixtureRequest) -> str:
    """A bucket of that store, with nothing in it."""
    if isinstance(objects, GcsObjects):
        made: Callable[[], str] = request.getfixturevalue("new_bucket")
        return made()
    return "bucket"
