"""The local service that answers for each of Google's host names."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_SERVICES = {
    "storage.googleapis.com": "storage",
    "www.googleapis.com": "storage",  # compiled into TensorFlow's tsl/platform/cloud/gcs_file_system.cc
    "pubsub.googleapis.com": "pubsub",
    "logging.googleapis.com": "logging",
    "aiplatform.googleapis.com": "vertex",
    "iam.googleapis.com": "iam",
    "iamcredentials.googleapis.com": "iam",
    "cloudresourcemanager.googleapis.com": "iam",
}
_REGIONAL = re.compile(r"[a-z0-9-]+-aiplatform\.googleapis\.com")


@dataclass(frozen=True, kw_only=True)
class Backend:
    """The loopback ports of one service; 0 for a port that does not exist.

    `grpc` may be a function that returns the port and may start the server first.
    """

    http: int = 0
    grpc: int | Callable[[], Awaitable[int]] = 0

    async def port_of(self, protocol: str | None) -> int:
        """The port for a protocol as TLS negotiates it: gRPC's is `h2`."""
        if protocol != "h2":
            return self.http
        return self.grpc if isinstance(self.grpc, int) else await self.grpc()


def service_of(host: str) -> str:
    """The stack's name of the service behind a host name in lower case; empty for a host that it does not serve."""
    return "vertex" if _REGIONAL.fullmatch(host) else _SERVICES.get(host, "")
