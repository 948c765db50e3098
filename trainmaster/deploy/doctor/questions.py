"""Queries about permissions, over REST: the services' client libraries each do it differently, or not at all."""

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from typing import Any
from urllib.parse import quote

import requests
from google.auth.transport.requests import AuthorizedSession

from trainmaster.client.clients import default_credentials
from trainmaster.deploy.doctor.deployment import GrantTarget

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
TOKEN_LIFETIME_S = 300
TIMEOUT_S = (10.0, 30.0)  # to connect; between two bytes of the answer
_HOSTS = {
    "account": "https://iam.googleapis.com/v1",
    "bucket": "https://storage.googleapis.com/storage/v1",
    "folder": "https://storage.googleapis.com/storage/v1",
    "function": "https://run.googleapis.com/v2",
    "project": "https://cloudresourcemanager.googleapis.com/v1",
    "secret": "https://secretmanager.googleapis.com/v1",
    "subscription": "https://pubsub.googleapis.com/v1",
    "topic": "https://pubsub.googleapis.com/v1",
    "token": "https://iamcredentials.googleapis.com/v1",
}
_IN_STORAGE = ("bucket", "folder")
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_POLICY_BY_POST = ("account", "project")


class AskRefusedError(Exception):
    """A service answered with an error; `status` is its HTTP status.

    403: the caller lacks permission. 404: the resource does not exist. 400: the service does not support the query.
    `reason` and `metadata` are those of its google.rpc.ErrorInfo, empty without one.
    """

    def __init__(
        self, status: int, message: str, reason: str = "", metadata: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {message}")
        self.status = status
        self.reason = reason
        self.metadata = metadata or {}


class Questions:
    """One caller's queries. Safe to use from several threads at once.

    Every method raises AskRefusedError if the answer is an error, and the errors of `requests` and `google.auth`.
    """

    def __init__(self, *, project: str, iam: str | None, storage: str | None) -> None:
        """`iam` and `storage`: addresses of their emulators; None for Google Cloud, where users are charged to `project`."""
        self._project = project
        self._iam = iam
        self._storage = storage
        self.policy = cache(self._policy)

    def base(self, kind: str) -> str:
        if self._iam is None:
            return _HOSTS[kind]
        version = _HOSTS[kind].partition(".com/")[2]
        return f"{self._storage if kind in _IN_STORAGE else self._iam}/{version}"

    def project_number(self, project: str) -> str:
        url = f"{self.base('project')}/projects/{project}"
        return str(self._ask("GET", url)["projectNumber"])

    def token(self, email: str) -> str:
        """An access token of the service account, valid for five minutes."""
        url = f"{self.base('token')}/projects/-/serviceAccounts/{email}:generateAccessToken"
        body = {"scope": [SCOPE], "lifetime": f"{TOKEN_LIFETIME_S}s"}
        return str(self._ask("POST", url, body=body)["accessToken"])

    def held_permissions(
        self, thing: GrantTarget, permissions: Sequence[str], token: str = ""
    ) -> frozenset[str]:
        """Those of the permissions that the token's account, by default the caller, has on the resource."""
        base = self.base(thing.kind)
        if thing.kind in _IN_STORAGE:
            query = [("permissions", each) for each in permissions]
            answer = self._ask("GET", f"{base}/{_path(thing)}/iam/testPermissions", query=query, token=token)
        else:
            url = f"{base}/{thing.resource}:testIamPermissions"
            answer = self._ask("POST", url, body={"permissions": list(permissions)}, token=token)
        return frozenset(answer.get("permissions", ()))

    def _policy(self, thing: GrantTarget) -> Mapping[str, frozenset[str]]:
        """The members of each role in the resource's own policy, without conditional bindings.

        Those of an object are the bucket's conditional bindings that name this object alone.
        """
        if thing.kind == "object":
            return self._bound_on_object(thing)
        base = self.base(thing.kind)
        if thing.kind in _IN_STORAGE:
            answer = self._ask("GET", f"{base}/{_path(thing)}/iam")
        else:
            verb = "POST" if thing.kind in _POLICY_BY_POST else "GET"
            answer = self._ask(verb, f"{base}/{thing.resource}:getIamPolicy")
        return _members_by_role(answer, "")

    def _bound_on_object(self, thing: GrantTarget) -> Mapping[str, frozenset[str]]:
        """As trainmaster/deploy/terraform/accounts.tf binds them."""
        url = f"{self.base('bucket')}/b/{thing.parts[0]}/iam"
        answer = self._ask("GET", url, query=[("optionsRequestedPolicyVersion", "3")])
        return _members_by_role(answer, condition_of(thing))

    @cached_property
    def _own(self) -> requests.Session:
        if self._iam is not None:
            return requests.Session()
        session: requests.Session = AuthorizedSession(default_credentials(self._project, replace=True))
        return session

    def _ask(
        self,
        verb: str,
        url: str,
        *,
        body: Mapping[str, object] | None = None,
        query: Sequence[tuple[str, str]] = (),
        token: str = "",
    ) -> dict[str, Any]:
        # Not through the caller's session, which would replace the token with the caller's.
        send = requests.request if token else self._own.request
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = send(verb, url, json=body, params=list(query), headers=headers, timeout=TIMEOUT_S)
        if answer.status_code >= 400:  # noqa: PLR2004  # HTTP: the client's and the server's errors
            raise _refusal(answer)
        found: dict[str, Any] = answer.json()
        return found

    def close(self) -> None:
        if "_own" in self.__dict__:
            self._own.close()


def condition_of(thing: GrantTarget) -> str:
    """The expression that limits a binding on a bucket to this object."""
    return f"resource.name == '{thing.resource}'"


def _members_by_role(policy: Mapping[str, Any], expression: str) -> Mapping[str, frozenset[str]]:
    """The members of each role, in bindings with this condition; empty for bindings without any."""
    bindings: dict[str, frozenset[str]] = {}
    for binding in policy.get("bindings", ()):
        if (binding.get("condition") or {}).get("expression", "") == expression:
            members = frozenset(binding.get("members", ()))
            bindings[binding["role"]] = bindings.get(binding["role"], frozenset()) | members
    return bindings


def _path(thing: GrantTarget) -> str:
    """A bucket's path in Cloud Storage's API, or a managed folder's.

    Source: https://cloud.google.com/storage/docs/json_api/v1/managedFolder/getIamPolicy (read 2026-11-23)
    """
    if thing.kind == "bucket":
        return f"b/{thing.name}"
    bucket, folder = thing.parts
    return f"b/{bucket}/managedFolders/{quote(folder, safe='')}"


def _refusal(answer: requests.Response) -> AskRefusedError:
    status = answer.status_code
    try:
        error = answer.json()["error"]
        infos = [each for each in error.get("details", ()) if each.get("@type") == _ERROR_INFO]
        info: dict[str, Any] = infos[0] if infos else {}  # Any: JSON
        return AskRefusedError(status, str(error["message"]), info.get("reason", ""), info.get("metadata"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return AskRefusedError(status, answer.text[:200])
