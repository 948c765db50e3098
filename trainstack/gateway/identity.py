"""The environment variables that let unmodified clients in a replica reach the stack as they reach Google Cloud."""

import asyncio
import json
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainstack.gateway.authority import BUNDLE, OWN
from trainstack.gateway.egress import http_variables
from trainstack.gateway.metadata import InstanceMetadata, application
from trainstack.gateway.proxy import Gateway
from trainstack.http import Server
from trainstack.iam.principals import Principal, Tokens

_MOST_OF_A_REPLICA = 200
"""Connections to its metadata server at once: each is a file of the stack's."""
_FSSPEC = json.dumps({"session_kwargs": {"trust_env": True}})


def default_account(project_number: str) -> str:
    """The service account of programs for which none is chosen.

    Source: https://cloud.google.com/iam/docs/service-account-types#default
    """
    return f"{project_number}-compute@developer.gserviceaccount.com"


@dataclass(kw_only=True, eq=False)
class WorkloadIdentity:
    """What one principal's programs need: a token, a metadata server, and the environment variables that point to both."""

    token: str
    metadata: Server
    variables: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class WorkloadIdentities:
    """Issues workload identities, and revokes them.

    `gateway_port` is the gateway's in every network; `gateway` itself is needed for networks besides this machine's.
    """

    tokens: Tokens
    project_id: str
    project_number: str
    gateway_port: int
    trust: Path
    gateway: Gateway | None = None

    @property
    def ports(self) -> list[int]:
        """Those that a network needs for `admit`: the gateway's, and those of this machine that every job may reach."""
        forwarded = self.gateway.forwarded_ports if self.gateway else []
        return [self.gateway_port, *forwarded]

    async def admit(self, listeners: Sequence[socket.socket]) -> list[asyncio.Server]:
        """Let the programs of another network reach the gateway, and by it what is not this machine.

        `listeners` are on that network's `ports`.
        """
        if self.gateway is None:
            return []
        gateway, *forwarded = listeners
        return [
            await self.gateway.listen(gateway),
            *[await self.gateway.forward(address) for address in forwarded],
        ]

    async def issue(
        self, principal: Principal, *, zone: str, listener: socket.socket | None = None
    ) -> WorkloadIdentity:
        """Start the principal's metadata server and issue its token.

        `listener` is where the server is reached in the principal's own network; None for a port of this machine.

        Raises:
            OSError: no port is free.
        """
        token = self.tokens.issue(principal)
        metadata = InstanceMetadata(
            project_id=self.project_id,
            project_number=self.project_number,
            zone=zone,
            email=principal.email or default_account(self.project_number),
            token=token,
        )
        server = Server(application(metadata), listener=listener, most_connections=_MOST_OF_A_REPLICA)
        await server.start()
        return WorkloadIdentity(
            token=token,
            metadata=server,
            variables=self._variables(principal, token, server.port, confined=listener is not None),
        )

    async def revoke(self, identity: WorkloadIdentity) -> None:
        """Stop the metadata server and revoke the token. Safe to repeat."""
        self.tokens.revoke(identity.token)
        await identity.metadata.stop()

    def _variables(
        self, principal: Principal, token: str, metadata_port: int, *, confined: bool
    ) -> dict[str, str]:
        proxy = f"http://{principal.kind}:{token}@127.0.0.1:{self.gateway_port}"
        bundle = str(self.trust / BUNDLE)
        metadata = f"127.0.0.1:{metadata_port}"
        return {
            "https_proxy": proxy,
            "HTTPS_PROXY": proxy,
            **http_variables(proxy if confined else None),
            # TensorFlow reads this file for each request, so it holds only what TensorFlow needs; the command
            # curl reads it too, so .curlrc points curl at the full bundle.
            "CURL_CA_BUNDLE": str(self.trust / OWN),
            "CURL_HOME": str(self.trust),
            # TensorFlow clears a buffer of this size for each file that it opens, by default 64 MiB.
            "GCS_READ_CACHE_BLOCK_SIZE_MB": "8",
            "REQUESTS_CA_BUNDLE": bundle,
            "SSL_CERT_FILE": bundle,  # OpenSSL, and so Python's ssl
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": bundle,
            "GCE_METADATA_HOST": metadata,
            "GCE_METADATA_IP": metadata,
            "GCE_METADATA_ROOT": metadata,  # google-cloud-cpp (pyarrow, pandas) and TensorStore (orbax)
            # by default, gcsfs has aiohttp ignore the environment's proxies
            "FSSPEC_GS": _FSSPEC,
            "FSSPEC_GCS": _FSSPEC,
        }
