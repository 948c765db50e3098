"""The APIs that `gcloud functions deploy` calls, as one account may use them: what it may not do is answered with 403.

The requests are those of gcloud 528; the answers have the fields that it reads, in the form of
https://cloud.google.com/functions/docs/reference/rest/v2/projects.locations.functions.
"""

import asyncio
import contextlib
import json
import uuid
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.judges.discovery import api as judge
from trainstack.http import in_thread, serving
from trainstack.json_bodies import google_error

Answer = Callable[["FunctionsApi", Request], Awaitable[Any]]
Deploy = Callable[[str, bytes], None]
"""Puts a function's new source into service, given the function's name and the source as a ZIP archive."""
APIS = {
    "cloudbuild": "cloudbuild.v1",
    "cloudfunctions": "cloudfunctions.v2",
    "resourcemanager": "cloudresourcemanager.v1",
    "serviceusage": "serviceusage.v1",
}
"""The API that each permission's method belongs to."""
IN_LOCATION = "/v2/projects/{project}/locations/{location}"
FUNCTION = IN_LOCATION + "/functions/{name}"


@dataclass(kw_only=True)
class FunctionsApi:
    """The state of the APIs: permissions used, uploads received, functions updated.

    Args:
        may: the account's permissions.
        failing: functions that cannot be built.
        deploy: called in a thread for each function that is updated, which is updated once the call returns.

    Attributes:
        sources: the uploaded archives by the name of their objects.
        updated: for each function the body of its update.
        faults: what Google's discovery documents say against the calls and these answers.
    """

    may: frozenset[str]
    failing: frozenset[str] = frozenset()
    deploy: Deploy | None = None
    url: str = ""
    asked: set[str] = field(default_factory=set)
    sources: dict[str, bytes] = field(default_factory=dict)
    updated: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        """What makes gcloud use these APIs."""
        names = ("CLOUDFUNCTIONS", "CLOUDRESOURCEMANAGER", "SERVICEUSAGE", "CLOUDBUILD")
        return {f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": f"{self.url}/" for name in names}

    def route(self, method: str, path: str, permission: str, answer: Answer) -> Route:
        async def respond(request: Request) -> Response:
            self.asked.add(permission)
            if permission not in self.may:
                return google_error(403, f"Permission '{permission}' denied", status="PERMISSION_DENIED")
            answered = await answer(self, request)
            await self.judge(permission, request, answered)
            return answered if isinstance(answered, Response) else JSONResponse(answered)

        return Route(path, respond, methods=[method])

    async def judge(self, permission: str, request: Request, answered: object) -> None:
        document, url = judge(APIS[permission.partition(".")[0]]), f"{request.url.path}?{request.url.query}"
        body = await request.body()
        self.faults += document.request_faults(request.method, url, json.loads(body) if body else None)
        if not isinstance(answered, Response):
            self.faults += document.answer_faults(request.method, url, answered)

    async def upload(self, request: Request) -> Response:
        self.sources[request.path_params["name"]] = await request.body()
        return JSONResponse({})


async def get_function(api: FunctionsApi, request: Request) -> object:
    return {
        "name": request.url.path.removeprefix("/v2/"),
        "environment": "GEN_2",
        "state": "ACTIVE",
        "buildConfig": {"runtime": "python311", "entryPoint": "f", "source": {"storageSource": {}}},
        "serviceConfig": {"allTrafficOnLatestRevision": True, "uri": "https://f.a.run.app"},
    }


async def update_function(api: FunctionsApi, request: Request) -> object:
    name = request.path_params["name"]
    if name in api.failing:
        return google_error(400, "Could not build the function", status="FAILED_PRECONDITION")
    body = await request.json()
    if api.deploy is not None:
        source = body["buildConfig"]["source"]["storageSource"]["object"]
        await asyncio.to_thread(api.deploy, name, api.sources[source])
    api.updated[name] = body
    return {"name": f"projects/p/locations/r/operations/{name}", "done": False}


async def list_runtimes(api: FunctionsApi, request: Request) -> object:
    return {"runtimes": [{"name": "python311", "environment": "GEN_2", "stage": "GA"}]}


async def generate_upload_url(api: FunctionsApi, request: Request) -> object:
    name = f"{uuid.uuid4()}.zip"
    return {
        "uploadUrl": f"{api.url}/upload/{name}",
        "storageSource": {"bucket": "gcf-v2-uploads", "object": name},
    }


async def get_operation(api: FunctionsApi, request: Request) -> object:
    metadata = {
        "@type": "type.googleapis.com/google.cloud.functions.v2.OperationMetadata",
        "stages": [{"name": "BUILD", "state": "COMPLETE"}],
    }
    return {"name": request.url.path.removeprefix("/v2/"), "metadata": metadata, "done": True, "response": {}}


async def get_project(api: FunctionsApi, request: Request) -> object:
    return {"projectId": request.path_params["project"], "projectNumber": "123456789012"}


async def get_service(api: FunctionsApi, request: Request) -> object:
    return {"name": request.url.path.removeprefix("/v1/"), "state": "ENABLED"}


async def get_default_account(api: FunctionsApi, request: Request) -> object:
    email = "123456789012-compute@developer.gserviceaccount.com"
    return {"serviceAccountEmail": f"projects/my-project/serviceAccounts/{email}"}


# Sources of the permissions: https://cloud.google.com/functions/docs/reference/iam/permissions,
# https://cloud.google.com/resource-manager/reference/rest/v1/projects/get,
# https://cloud.google.com/service-usage/docs/access-control and
# https://cloud.google.com/build/docs/api/reference/rest/v1/projects.locations/getDefaultServiceAccount
METHODS: tuple[tuple[str, str, str, Answer], ...] = (
    ("GET", FUNCTION, "cloudfunctions.functions.get", get_function),
    ("PATCH", FUNCTION, "cloudfunctions.functions.update", update_function),
    ("GET", IN_LOCATION + "/runtimes", "cloudfunctions.runtimes.list", list_runtimes),
    (
        "POST",
        IN_LOCATION + "/functions:generateUploadUrl",
        "cloudfunctions.functions.sourceCodeSet",
        generate_upload_url,
    ),
    ("GET", IN_LOCATION + "/operations/{name}", "cloudfunctions.operations.get", get_operation),
    ("GET", "/v1/projects/{project}", "resourcemanager.projects.get", get_project),
    ("GET", "/v1/projects/{project}/services/{service}", "serviceusage.services.get", get_service),
    (
        "GET",
        "/v1/projects/{project}/locations/{location}/defaultServiceAccount",
        "cloudbuild.builds.get",
        get_default_account,
    ),
)


@contextlib.contextmanager
def functions_api(
    may: frozenset[str], failing: frozenset[str] = frozenset(), deploy: Deploy | None = None
) -> Iterator[FunctionsApi]:
    """The APIs on a free port, until the block ends."""
    api = FunctionsApi(may=may, failing=failing, deploy=deploy)
    routes = [api.route(*method) for method in METHODS]
    upload = Route("/upload/{name}", api.upload, methods=["PUT"])
    with in_thread(lambda: serving(Starlette(routes=[*routes, upload]))) as api.url:
        yield api
    assert not api.faults, api.faults
