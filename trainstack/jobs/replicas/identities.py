"""The identities of one job's replicas, see `trainstack.gateway.identity`."""

import asyncio
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from trainstack.gateway.identity import WorkloadIdentities, WorkloadIdentity, default_account
from trainstack.iam.principals import Principal
from trainstack.jobs.resource.job import JobReplica, VertexJob
from trainstack.sandbox.network import Network

_Listeners: TypeAlias = tuple[socket.socket, ...]


class ReplicaIdentities:
    """One identity for each replica, kept across its restarts.

    Without `identities`, replicas get no variables.
    """

    def __init__(
        self, identities: WorkloadIdentities | None, job: VertexJob, network: Network | None = None
    ) -> None:
        """`network` is the job's, with the listeners that `Machine.open_network` makes."""
        self._identities = identities
        shared, listeners = _split(network.listeners if network else (), len(job.replicas))
        self._shared = shared
        self._listeners = dict(zip(job.replicas, listeners, strict=False))
        self._admitted: list[asyncio.Server] = []
        self._job_id = job.job_id
        self._zone = f"{job.location}-a"
        self.email = job.message.job_spec.service_account or default_account(job.project)
        """The service account of all of them."""
        self._issued: dict[JobReplica, WorkloadIdentity] = {}

    @property
    def trust(self) -> Path | None:
        """The folder that the variables name, to be mounted for isolated replicas."""
        return self._identities.trust if self._identities else None

    async def variables(self, replica: JobReplica) -> Mapping[str, str]:
        """The replica's environment variables. Raises `OSError` if no port is free."""
        if self._identities is None:
            return {}
        if self._shared:
            shared, self._shared = self._shared, ()
            self._admitted = await self._identities.admit(shared)
        if replica not in self._issued:
            principal = Principal(kind="replica", name=f"{self._job_id}/{replica.name}", email=self.email)
            self._issued[replica] = await self._identities.issue(
                principal, zone=self._zone, listener=self._listeners.get(replica)
            )
        return self._issued[replica].variables

    async def revoke(self) -> None:
        """Revoke every identity and its token, and close the way to the gateway."""
        admitted, self._admitted = self._admitted, []
        for server in admitted:
            server.close()
        issued, self._issued = list(self._issued.values()), {}
        for identity in issued:
            if self._identities:
                await self._identities.revoke(identity)


def _split(listeners: _Listeners, replicas: int) -> tuple[_Listeners, _Listeners]:
    """Those that all replicas share, and one for each replica."""
    shared = max(0, len(listeners) - replicas)
    return listeners[:shared], listeners[shared:]
