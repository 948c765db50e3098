"""Every service over the grants of one deployment, and calls of them with the token of any account."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from google.pubsub_v1 import types

from tests.stack.services import Services, deployed_grants, every_service
from trainstack.http import in_thread
from trainstack.iam import Grants
from trainstack.iam.principals import Principal
from trainstack.pubsub.api.methods import METHODS

PROJECT, REGION = "enforced-project", "us-central1"
LEDGER, MODELS, MINE = f"{PROJECT}-ledger", f"{PROJECT}-models", "my-other-bucket"
TOPIC = f"projects/{PROJECT}/topics/trainmaster-notices"
JOBS = f"projects/{PROJECT}/locations/{REGION}/customJobs"
STRANGER, TRAINER, TICK, ARRIVALS = "stranger", "tm-trainer", "tm-on-tick", "tm-on-data-arrived"
UNAUTHORIZED = "User not authorized to perform this action."


def email(account: str) -> str:
    return f"{account}@{PROJECT}.iam.gserviceaccount.com"


@dataclass(frozen=True, kw_only=True)
class Served(Services):
    """Every service over one deployment's grants."""

    http: httpx.Client

    def token(self, account: str) -> str:
        principal = Principal(kind="account", name=account, email=email(account))
        return f"Bearer {self.tokens.issue(principal)}"

    def call(
        self, verb: str, service: str, path: str, account: str = "", **options: Any
    ) -> httpx.Response:  # Any: httpx's
        """A call with the account's token; without an account, the local user's."""
        headers = options.pop("headers", {}) | ({"Authorization": self.token(account)} if account else {})
        return self.http.request(verb, self.urls[service] + path, headers=headers, **options)

    def upload(self, bucket: str, name: str, account: str = "", **more: str) -> httpx.Response:
        return self.call(
            "POST", "storage", f"/upload/storage/v1/b/{bucket}/o", account,
            params={"uploadType": "media", "name": name, **more}, content=b"x",
        )  # fmt: skip

    def read(self, bucket: str, name: str, account: str) -> httpx.Response:
        return self.call("GET", "storage", f"/storage/v1/b/{bucket}/o/{name.replace('/', '%2F')}", account)


@pytest.fixture(scope="module")
def grants() -> Grants:
    return deployed_grants(PROJECT)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, grants: Grants) -> Iterator[Served]:
    with in_thread(lambda: running(tmp_path_factory.mktemp("enforced"), grants)) as services:
        for bucket in (LEDGER, MODELS, MINE):
            made = services.call("POST", "storage", f"/storage/v1/b?project={PROJECT}", json={"name": bucket})
            made.raise_for_status()
        for bucket, name in ((LEDGER, "runs/a.json"), (MODELS, "team-a/model"), (MODELS, "team-b/model")):
            services.upload(bucket, name).raise_for_status()
        call_pubsub(services, "CreateTopic", types.Topic(name=TOPIC), "")
        yield services


@contextlib.asynccontextmanager
async def running(folder: Path, grants: Grants) -> AsyncIterator[Served]:
    async with every_service(folder, grants) as services:
        with httpx.Client(timeout=60, trust_env=False) as http:
            yield Served(**vars(services), http=http)


def call_pubsub(served: Served, method: str, request: Any, account: str) -> bytes:  # Any: any request
    service = next(name for name, methods in METHODS.items() if method in methods)
    raw = request if isinstance(request, bytes) else type(request).serialize(request)
    metadata = [("authorization", served.token(account))] if account else []
    with grpc.insecure_channel(f"127.0.0.1:{served.pubsub}") as channel:
        answer = channel.unary_unary(f"/{service}/{method}")(raw, metadata=metadata, timeout=60)
    return bytes(answer)


def denied(answer: httpx.Response) -> str:
    """The message of a refusal in the form that all services share, or the XML API's."""
    if answer.text.startswith("<?xml"):
        assert (answer.status_code, "<Code>AccessDenied</Code>" in answer.text) == (403, True), answer.text
        return answer.text
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (403, 403), answer.text
    return str(error["message"])
