"""Compute Engine's metadata server, as far as Google's client libraries use it.

Sources: https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys for the keys, google-auth's
google/auth/compute_engine/_metadata.py and TensorFlow's compute_engine_metadata_client.cc for their requests.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trainstack.http import LoopbackOnly

FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_ROOT = "/computeMetadata/v1/"
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
LIFETIME_S = 3600

_Node: TypeAlias = "str | int | list[str] | dict[str, _Node] | Callable[[], object]"


@dataclass(frozen=True, kw_only=True)
class InstanceMetadata:
    """The replica's identity.

    `zone` is like `europe-west4-a`; `email` is the service account's; `token` is its access token.
    """

    project_id: str
    project_number: str
    zone: str
    email: str
    token: str


def application(metadata: InstanceMetadata) -> ASGIApp:
    """The ASGI application, for the port of one replica.

    Like the service, it refuses with 403 a request without `Metadata-Flavor: Google` or with
    `X-Forwarded-For`, so no web page can read a token here.
    """

    async def answer(request: Request) -> Response:
        if request.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in request.headers:
            return PlainTextResponse("Missing Metadata-Flavor:Google header.\n", 403, FLAVOR)
        return _answer(metadata, request.url.path, request.query_params)

    async def ping(_request: Request) -> Response:
        return PlainTextResponse("computeMetadata/\n", headers=FLAVOR)

    return LoopbackOnly(Starlette(routes=[Route("/", ping), Route(_ROOT + "{key:path}", answer)]))


def _answer(metadata: InstanceMetadata, path: str, query: Mapping[str, str]) -> Response:
    node: _Node = _tree(metadata)
    for name in filter(None, path.removeprefix(_ROOT).split("/")):
        if not isinstance(node, dict) or name not in node:
            return PlainTextResponse(f"{path} is not a metadata key.\n", 404, FLAVOR)
        node = node[name]
    if callable(node):
        return JSONResponse(node(), headers=FLAVOR)
    if query.get("recursive", "").lower() == "true" or query.get("alt") == "json":
        return JSONResponse(_recursive(node), headers=FLAVOR)
    return PlainTextResponse(_text(node), headers=FLAVOR)


def _tree(metadata: InstanceMetadata) -> dict[str, "_Node"]:
    """The keys by directory; a callable computes a value that is served only alone, never in a directory."""
    account: dict[str, _Node] = {
        "aliases": ["default"],
        "email": metadata.email,
        "scopes": list(_SCOPES),
        "token": lambda: {
            "access_token": metadata.token,
            "expires_in": LIFETIME_S,
            "token_type": "Bearer",
        },
    }
    number = metadata.project_number
    return {
        "instance": {
            "region": f"projects/{number}/regions/{metadata.zone.rpartition('-')[0]}",
            "service-accounts": {"default": account, metadata.email: account},
            "zone": f"projects/{number}/zones/{metadata.zone}",
        },
        "project": {"numeric-project-id": int(number), "project-id": metadata.project_id},
        "universe": {"universe-domain": "googleapis.com"},
    }


def _recursive(node: "_Node") -> object:
    """The directory as one JSON value, with keys in camel case."""
    if not isinstance(node, dict):
        return node
    return {_camel(name): _recursive(child) for name, child in node.items() if not callable(child)}


def _text(node: "_Node") -> str:
    match node:
        case dict():
            lines = [f"{name}/" if isinstance(child, dict) else name for name, child in node.items()]
        case list():
            lines = list(node)
        case _:
            return str(node)
    return "".join(f"{line}\n" for line in lines)


def _camel(name: str) -> str:
    first, *others = name.split("-") if "@" not in name else [name]
    return first + "".join(word.title() for word in others)
