"""Functions of the staged source, in their processes as the local stack runs them, against their own emulators."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from tests.stack.functions.hosted import hosted
from trainmaster.deploy.stage import stage
from trainstack import pubsub, storage
from trainstack.events.clients import clients_of
from trainstack.vertex import Jobs, serve

PROJECT, REGION = "my-project", "us-central1"


@contextlib.contextmanager
def functions(*entry_points: str, state: Path) -> Iterator[list[int]]:
    """The port of each function; their project is `my-project`, their jobs are those of an empty JobService."""
    stage(state / "source", bytecode=True)
    jobs = Jobs(
        dir=state / "jobs",
        buckets_dir=state / "storage" / "buckets",
        images={},
        write_log=lambda _: None,
        project=PROJECT,
        grace_s=1.0,
    )
    with (
        pubsub.serve(state / "pubsub") as host,
        storage.serve(state / "storage") as files,
        serve(jobs) as url,
    ):
        _provide(host, files)
        shared = {
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "TRAINMASTER_REGION": REGION,
            **{f"TRAINMASTER_{role.upper()}_BUCKET": f"{PROJECT}-{role}" for role in _BUCKETS},
            "TRAINMASTER_NOTICES_TOPIC": "notices",
            "STORAGE_EMULATOR_HOST": files,
            "PUBSUB_EMULATOR_HOST": host,
            "VERTEX_EMULATOR_HOST": url,
            "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true",
        }
        with hosted(
            *entry_points, source=state / "source", state=state, environment=shared, timeout_s=60
        ) as instances:
            yield [int(instance.url.rpartition(":")[2]) for instance in instances.values()]


_BUCKETS = ("inbox", "ledger", "models", "champions")


def _provide(host: str, files: str) -> None:
    with clients_of(host) as clients:
        clients.publisher.create_topic(name=f"projects/{PROJECT}/topics/notices")
    client = Client(
        project=PROJECT, credentials=AnonymousCredentials(), client_options={"api_endpoint": files}
    )
    for role in _BUCKETS:
        client.create_bucket(f"{PROJECT}-{role}")
    client.close()
