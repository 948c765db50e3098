"""Data sets and weights that libraries download from public buckets are found as on Vertex AI."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trainstack.gateway.authority import Authority
from trainstack.gateway.proxy import Backend, Gateway
from trainstack.http import in_thread, serving
from trainstack.iam.principals import LOCAL_USER, Tokens
from trainstack.storage import Storage

from .conftest import bearer

WEIGHTS = b"weights" * 100_000
HOST = "https://storage.googleapis.com"


@dataclass(kw_only=True)
class World:
    """A project's storage behind a gateway, and the public buckets beyond it, with what was asked of them."""

    url: str = ""
    proxy: str = ""
    token: str = ""
    trust: Path = Path()
    asked: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)

    async def public(self, request: Request) -> Response:
        path = f"{request.scope['raw_path'].decode()}?{request.scope['query_string'].decode()}"
        self.asked.append((request.method, path, dict(request.headers)))
        if "nothing" in path:
            return Response("NoSuchKey", 404)
        if value := request.headers.get("range"):
            first, last = map(int, value.removeprefix("bytes=").split("-"))
            return Response(WEIGHTS[first : last + 1], 206, {"content-range": f"bytes {first}-{last}/*"})
        return Response(WEIGHTS, headers={"x-goog-generation": "7", "etag": "e"})


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("public")
    with in_thread(lambda: _running(folder)) as running:
        yield running


@contextlib.asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[World]:
    world, tokens = World(), Tokens()
    async with contextlib.AsyncExitStack() as stack:
        beyond = await stack.enter_async_context(
            serving(Starlette(routes=[Route("/{path:path}", world.public)]))
        )
        world.url = await stack.enter_async_context(
            serving(Storage(dir=folder / "here", tokens=tokens, public_data=beyond))
        )
        authority = await asyncio.to_thread(Authority, folder / "gateway")
        gateway = Gateway(authority=authority, tokens=tokens)
        stack.push_async_callback(gateway.stop)
        await gateway.start()
        gateway.backends["storage"] = Backend(http=int(world.url.rpartition(":")[2]))
        world.token = tokens.issue(LOCAL_USER)
        world.proxy = f"http://user:{world.token}@127.0.0.1:{gateway.port}"
        world.trust = authority.trust / "bundle.pem"
        yield world


@pytest.fixture
def replica(world: World) -> Iterator[httpx.Client]:
    """A program in a replica, which shows no token by itself."""
    world.asked.clear()
    trusting = ssl.create_default_context(cafile=str(world.trust))
    with httpx.Client(
        base_url=HOST, proxy=world.proxy, verify=trusting, trust_env=False, timeout=60
    ) as client:
        yield client


def test_a_public_object_is_downloaded_as_it_is(world: World, replica: httpx.Client) -> None:
    answer = replica.get("/tensorflow/keras-applications/a%2Fb%20c.h5", params={"x": "1"})
    assert (answer.status_code, answer.content) == (200, WEIGHTS)
    assert answer.headers["x-goog-generation"] == "7"
    ((verb, path, headers),) = world.asked
    assert (verb, path) == ("GET", "/tensorflow/keras-applications/a%2Fb%20c.h5?x=1")
    assert "authorization" not in headers
    assert world.token not in str(headers)


def test_ranges_heads_and_the_json_api_are_handed_on(world: World, replica: httpx.Client) -> None:
    part = replica.get("/tensorflow/weights.h5", headers={"Range": "bytes=0-6"})
    assert (part.status_code, part.content, part.headers["content-range"]) == (206, b"weights", "bytes 0-6/*")
    assert replica.head("/tensorflow/weights.h5").headers["content-length"] == str(len(WEIGHTS))
    assert replica.get("/storage/v1/b/tfds-data/o", params={"prefix": "dataset_info/"}).content == WEIGHTS
    assert replica.get("/tensorflow/nothing").status_code == 404
    assert [verb for verb, *_ in world.asked] == ["GET", "HEAD", "GET", "GET"]


def test_nothing_else_leaves_the_machine(world: World, replica: httpx.Client) -> None:
    own = bearer(world.token)
    replica.post("/storage/v1/b?project=p", json={"name": "own-bucket"}, headers=own).raise_for_status()
    assert replica.get("/own-bucket/a").status_code == 403  # as the XML API answers anonymous callers
    assert replica.get("/storage/v1/b/own-bucket/o/a").status_code == 401
    assert replica.get("/public-bucket/a", headers=own).status_code == 404
    assert replica.get("/public-bucket/a", headers=bearer("guessed")).status_code == 401
    upload = "/upload/storage/v1/b/public-bucket/o?uploadType=media&name=a"
    assert replica.post(upload, content=b"x").status_code == 404
    assert replica.delete("/storage/v1/b/public-bucket/o/a").status_code == 404
    assert httpx.get(f"{world.url}/public-bucket/a").status_code == 404
    assert world.asked == []


def test_an_unreachable_service_is_a_502(tmp_path: Path) -> None:
    unreachable = Storage(dir=tmp_path, tokens=Tokens(), public_data="http://127.0.0.1:1")
    transport = httpx.HTTPTransport(local_address="127.0.0.2")  # as the gateway's connections
    with (
        in_thread(lambda: serving(unreachable)) as url,
        httpx.Client(transport=transport, timeout=60) as client,
    ):
        answer = client.get(f"{url}/tensorflow/weights.h5")
    assert answer.status_code == 502
    assert "bucket 'tensorflow' does not exist in this stack" in answer.json()["error"]["message"]
