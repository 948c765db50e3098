"""A user's credentials, at the services' own addresses: which project pays for a request, and the message if none does."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from trainmaster.deploy.doctor.caller import USE_QUOTA
from trainmaster.deploy.doctor.questions import Questions
from trainstack.gateway.authority import Authority
from trainstack.gateway.proxy import Backend, Gateway
from trainstack.http import in_thread, serving
from trainstack.iam.principals import Principal, Tokens
from trainstack.json_bodies import google_error

PROJECT, GOOGLES = "p-one", "764086051850"
"""GOOGLES: the project of the OAuth client of `gcloud auth application-default login`."""
_VARIABLES = ("GOOGLE_CLOUD_QUOTA_PROJECT", "GOOGLE_CLOUD_PROJECT", "no_proxy", "NO_PROXY")


@dataclass
class Cloud:
    """Resource Manager and Vertex AI, for a user who may see PROJECT and use the quota of `usable`.

    Both are charged to the caller's project. Their refusals are those in
    https://github.com/GoogleCloudPlatform/cloud-foundation-fabric/issues/2622 and
    https://github.com/lbjlaq/Antigravity-Manager/issues/3050.
    """

    usable: set[str] = field(default_factory=lambda: {PROJECT})
    charged: list[str] = field(default_factory=list)

    async def answer(self, request: Request) -> JSONResponse:
        project = request.headers.get("x-goog-user-project", "")
        self.charged.append(project)
        service = request.headers["host"]
        if project not in self.usable and project:
            return self._refusal("USER_PROJECT_DENIED", project, service, f"{_DENIED} {project}. {_GRANT}")
        if not project:
            return self._refusal("SERVICE_DISABLED", GOOGLES, service, f"{_LOCAL} The {service} {_NO_QUOTA}")
        if project != PROJECT:
            unused = f"{service} has not been used in project {project} before or it is disabled."
            return self._refusal("SERVICE_DISABLED", project, service, unused)
        if "customJobs" in request.url.path:
            return JSONResponse({"customJobs": []})
        return JSONResponse({"projectId": PROJECT, "projectNumber": "4711"})

    def _refusal(self, reason: str, consumer: str, service: str, message: str) -> JSONResponse:
        info = {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": reason,
            "domain": "googleapis.com",
            "metadata": {"consumer": f"projects/{consumer}", "service": service},
        }
        return google_error(403, message, status="PERMISSION_DENIED", details=[info])


_LOCAL = "Your application is authenticating by using local Application Default Credentials."
_NO_QUOTA = "API requires a quota project, which is not set by default."
_DENIED = "Caller does not have required permission to use project"
_GRANT = "Grant the caller the roles/serviceusage.serviceUsageConsumer role, and then retry."


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cloud, dict[str, str]]]:
    """The cloud, and the variables that lead clients to it instead of to Google."""
    cloud, folder = Cloud(), tmp_path_factory.mktemp("gateway")

    @contextlib.asynccontextmanager
    async def running() -> AsyncIterator[dict[str, str]]:
        tokens, authority = Tokens(), Authority(folder)
        gateway = Gateway(authority=authority, tokens=tokens)
        app = Starlette(routes=[Route("/{path:path}", cloud.answer, methods=["GET", "POST"])])
        async with serving(app) as url:
            port = await gateway.start()
            gateway.backends |= dict.fromkeys(("iam", "vertex"), Backend(http=int(url.rpartition(":")[2])))
            token = tokens.issue(Principal(kind="user", name="test", email="me@example.com"))
            try:
                yield {
                    "https_proxy": f"http://any:{token}@127.0.0.1:{port}",
                    "REQUESTS_CA_BUNDLE": str(authority.trust / "bundle.pem"),
                }
            finally:
                await asyncio.wait_for(gateway.stop(), 30)

    with in_thread(running) as variables:
        yield cloud, variables


@pytest.fixture
def cloud(served: tuple[Cloud, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """The cloud, for the user whose credentials `gcloud auth application-default login` has written."""
    found, variables = served
    found.usable, found.charged = {PROJECT}, []
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    file = write_credentials(tmp_path)
    for name, value in {**variables, "GOOGLE_APPLICATION_CREDENTIALS": str(file)}.items():
        monkeypatch.setenv(name, value)
    return found


def write_credentials(folder: Path, **more: str) -> Path:
    """Write a user's credentials, whose token is valid for another hour."""
    expiry = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    file = folder / "credentials.json"
    secrets = {"client_id": "c", "client_secret": "s", "refresh_token": "r", "token": "t", "expiry": expiry}
    file.write_text(json.dumps({"type": "authorized_user", **secrets, **more}))
    return file


def asked_number() -> str:
    with closing(Questions(project=PROJECT, iam=None, storage=None)) as questions:
        return questions.project_number(PROJECT)


def test_the_doctor_charges_a_users_requests_to_the_deployments_project(cloud: Cloud, tmp_path: Path) -> None:
    assert asked_number() == "4711"
    write_credentials(tmp_path, quota_project_id="where-i-logged-in")
    assert asked_number() == "4711"
    assert cloud.charged == [PROJECT, PROJECT]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (
            None,
            [
                f"FAILED   your quota project: you may not charge requests to {PROJECT}: 403 Caller does not have",
                f"gcloud projects add-iam-policy-binding {PROJECT} --member=user:YOU --role={USE_QUOTA}",
            ],
        ),
        (
            "other",
            [
                "FAILED   your quota project: your requests are charged to other, which does not have the API: 403",
                "gcloud services enable cloudresourcemanager.googleapis.com --project=other",
                f"export GOOGLE_CLOUD_QUOTA_PROJECT={PROJECT}",
            ],
        ),
    ],
)
def test_a_quota_project_that_is_refused_gets_a_finding_of_its_own(
    cloud: Cloud, chosen: str | None, said: list[str]
) -> None:
    cloud.usable = {"other"}
    more = {"GOOGLE_CLOUD_QUOTA_PROJECT": chosen} if chosen else {}
    ran = subprocess.run(
        [sys.executable, "-m", "trainmaster", "doctor", "--project", PROJECT, "--region", "us-central1"],
        env={**os.environ, **more}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert all(each in ran.stdout for each in said), ran.stdout
    assert "does not exist" not in ran.stdout
