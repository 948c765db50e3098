"""A context whose only service is storage, on a real server: enough for verbs that read and write objects."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.command import Done, trainmaster
from tests.fixtures import fixture_of
from tests.ready_stack import announce
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_of_stack
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainstack.http import in_thread, serving
from trainstack.json_bodies import google_error
from trainstack.storage import serve

ROOT = Path(__file__).resolve().parents[2]
PROJECT = "trainmaster-local"


@dataclass(frozen=True, kw_only=True)
class Served:
    """The context's official clients, and the command run in its folder."""

    clients: Clients
    folder: Path

    def write(self, bucket: str, name: str, document: Mapping[str, Any]) -> None:
        self.clients.storage.bucket(f"{PROJECT}-{bucket}").blob(name).upload_from_string(json.dumps(document))

    def trainmaster(self, *words: str, text: str = "") -> Done:
        environment = {"HOME": str(self.folder), "PATH": "/usr/bin:/bin"}
        return trainmaster(*words, cwd=self.folder, environment=environment, text=text)


def run_record(example: str = "succeeded", **changes: Any) -> dict[str, Any]:  # Any: a JSON document
    """A record of schemas/examples, with these keys changed."""
    path = ROOT / "schemas/examples/valid" / f"run_record.v2.{example}.json"
    document: dict[str, Any] = json.loads(path.read_text())
    return document | changes


@contextmanager
def served_context(folder: Path, *, publishes: bool = False, **more: str) -> Iterator[Served]:
    """`more` are variables of further services, for example VERTEX_EMULATOR_HOST. `publishes`: the ledger says what
    the deployment is.
    """
    with serve(folder / "storage") as url:
        variables = {
            "GOOGLE_CLOUD_PROJECT": PROJECT,
            "TRAINMASTER_REGION": "us-central1",
            "STORAGE_EMULATOR_HOST": url,
            "LOGGING_EMULATOR_HOST": url,  # only asked whether it answers
            **{f"TRAINMASTER_{name.upper()}_BUCKET": f"{PROJECT}-{name}" for name in BUCKETS},
            **more,
        }
        state = folder / ".trainmaster"
        state.mkdir()
        announce(state, variables)
        with Clients(context_of_stack(variables, state)) as clients:
            for name in BUCKETS:
                clients.storage.create_bucket(f"{PROJECT}-{name}")
            served = Served(clients=clients, folder=folder)
            if publishes:
                served.write("ledger", DEPLOYMENT_OBJECT, deployment())
            yield served


@contextmanager
def no_jobs() -> Iterator[str]:
    """The URL of a JobService in which no job exists, so that a record's own times are shown."""

    async def answer(_: Request) -> Response:
        return google_error(404, "no such job", status="NOT_FOUND")

    app = Starlette(routes=[Route("/{path:path}", answer)])
    with in_thread(lambda: serving(app)) as url:
        yield url


def deployment() -> dict[str, Any]:  # Any: a JSON document
    """What a deployment with the shipped policy and prices publishes."""
    from trainmaster.client.deployment import deployment_document

    resources = {
        "buckets": {name: f"{PROJECT}-{name}" for name in BUCKETS},
        "topics": {"requests": "trainmaster-requests"},
        "images": {"trainer": "trainer:latest"},
    }
    policy, prices = ((ROOT / "functions" / f"{name}.yaml").read_bytes() for name in ("policy", "prices"))
    return deployment_document(resources, project=PROJECT, region="us-central1", policy=policy, prices=prices)


BUCKETS = ("inbox", "ledger", "models", "champions", "data")


served_once = partial(fixture_of, served_context)
"""Makes what a function writes to a served context the module's fixture of it."""
