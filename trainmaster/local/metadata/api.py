"""Compute Engine's metadata server, as far as Google's client libraries ask it.

Sources: https://cloud.google.com/compute/docs/metadata/predefined-metadata-keys for the keys,
google-auth's google/auth/compute_engine/_metadata.py and TensorFlow's compute_engine_metadata_client.cc for the
questions they ask.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from trainmaster.local.http import LoopbackOnly

FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_ROOT = "/computeMetadata/v1/"
_ACCOUNTS = "instance/service-accounts/"
_SCOPES = ("https://www.googleapis.com/auth/cloud-platform",)
LIFETIME_S = 3600


@dataclass(frozen=True, kw_only=True)
class InstanceMetadata:
    """Who asks. `zone` is `europe-west4-a`; `email` is the service account's; `token` makes an access token."""

    project_id: str
    project_number: str
    zone: str
    email: str
    token: Callable[[], str]


def application(metadata: InstanceMetadata) -> ASGIApp:
    """The ASGI application, for one replica's own port.

    A request without `Metadata-Flavor: Google` is refused with 403 as by the service, and one that carries
    `X-Forwarded-For` too, so no page in a browser reads a token here.
    """

    async def answer(request: Request) -> Response:
        if request.headers.get("metadata-flavor") != "Google" or "x-forwarded-for" in request.headers:
            return PlainTextResponse("Missing Metadata-Flavor:Google header.\n", 403, FLAVOR)
        return _answer(metadata, request.url.path, request.query_params)

    async def ping(_request: Request) -> Response:
        return PlainTextResponse("computeMetadata/\n", headers=FLAVOR)

    return LoopbackOnly(Starlette(routes=[Route("/", ping), Route(_ROOT + "{key:path}", answer)]))


def _answer(metadata: InstanceMetadata, path: str, query: Mapping[str, str]) -> Response:
    key = path.removeprefix(_ROOT)
    account = {"aliases": ["default"], "email": metadata.email, "scopes": list(_SCOPES)}
    texts = {
        "project/project-id": metadata.project_id,
        "project/numeric-project-id": metadata.project_number,
        "instance/zone": f"projects/{metadata.project_number}/zones/{metadata.zone}",
        "instance/region": f"projects/{metadata.project_number}/regions/{metadata.zone.rpartition('-')[0]}",
        "universe/universe-domain": "googleapis.com",
        _ACCOUNTS: f"default/\n{metadata.email}/\n",
    }
    if key == _ACCOUNTS and "recursive" in query:
        return JSONResponse({"default": account, metadata.email: account}, headers=FLAVOR)
    if (text := texts.get(key)) is not None:
        return PlainTextResponse(text, headers=FLAVOR)
    name, _, field = key.removeprefix(_ACCOUNTS).partition("/")
    if key.startswith(_ACCOUNTS) and name in ("default", metadata.email):
        return _account(metadata, account, field)
    return PlainTextResponse(f"{path} is no key here.\n", 404, FLAVOR)


def _account(metadata: InstanceMetadata, account: Mapping[str, object], field: str) -> Response:
    match field:
        case "":
            return JSONResponse(account, headers=FLAVOR)
        case "email":
            return PlainTextResponse(metadata.email, headers=FLAVOR)
        case "scopes":
            return PlainTextResponse("\n".join(_SCOPES) + "\n", headers=FLAVOR)
        case "token":
            body = {"access_token": metadata.token(), "expires_in": LIFETIME_S, "token_type": "Bearer"}
            return JSONResponse(body, headers=FLAVOR)
        case _:
            return PlainTextResponse(f"service account has no {field!r} here.\n", 404, FLAVOR)
