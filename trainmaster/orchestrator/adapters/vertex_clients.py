"""Vertex AI's generated clients over REST, one for each service and region."""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from trainmaster.orchestrator.adapters.total_limit import limit_connections
from trainmaster.partial_import import IMPORTING

_Client = TypeVar("_Client")
TIMEOUT_S = 30.0
"""The limit for one connection or read of any call; for a submission, from its start to its response."""


class RegionalClients:
    """The clients, each made when it is first needed. `endpoint` is None for Google Cloud."""

    def __init__(self, endpoint: str | None) -> None:
        self._endpoint = endpoint
        self._clients: dict[tuple[object, str], Any] = {}  # Any: of the class in the key
        self._making = threading.Lock()

    def _kept_client(self, kind: Callable[..., _Client], region: str) -> _Client:
        with self._making:
            if (kind, region) not in self._clients:
                self._clients[kind, region] = self._make_client(kind, region)
            client: _Client = self._clients[kind, region]
            return client

    def _make_client(self, kind: Callable[..., _Client], region: str) -> _Client:
        with IMPORTING:
            from google.auth.credentials import AnonymousCredentials

        client = kind(
            transport="rest",
            credentials=AnonymousCredentials() if self._endpoint else None,
            client_options={"api_endpoint": self._endpoint or f"https://{region}-aiplatform.googleapis.com"},
        )
        limit_connections(session_of(client))
        return client


def session_of(client: Any) -> Any:  # Any: google.auth ships no types
    """The client's AuthorizedSession; a REST transport has no public name for it."""
    return vars(client.transport)["_session"]
