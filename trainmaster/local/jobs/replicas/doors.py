"""The doors of one job's replicas into the stack's services, see `trainmaster.local.gateway.access`."""

from collections.abc import Mapping
from pathlib import Path

from trainmaster.local.gateway.access import Access, Door
from trainmaster.local.iam.principals import Principal
from trainmaster.local.jobs.resource.job import Job
from trainmaster.local.jobs.resource.replica import Replica

_DEFAULT_ACCOUNT = "{number}-compute@developer.gserviceaccount.com"
"""Source: https://cloud.google.com/iam/docs/service-account-types#default"""


class Doors:
    """One door for each replica, kept when the replica is restarted. Without `access`, replicas get no variables."""

    def __init__(self, access: Access | None, job: Job) -> None:
        self._access = access
        self._job_id = job.job_id
        self._zone = f"{job.location}-a"
        self._email = job.message.job_spec.service_account or _DEFAULT_ACCOUNT.format(number=job.project)
        self._open: dict[Replica, Door] = {}

    @property
    def trust(self) -> Path | None:
        """The folder that the variables name, for replicas that see only what they are given."""
        return self._access.trust if self._access else None

    async def variables(self, replica: Replica) -> Mapping[str, str]:
        """What the replica's environment says. Raises `OSError` when no port is free."""
        if self._access is None:
            return {}
        if replica not in self._open:
            principal = Principal(kind="replica", name=f"{self._job_id}/{replica.name}", email=self._email)
            self._open[replica] = await self._access.open(principal, zone=self._zone)
        return self._open[replica].variables

    async def close(self) -> None:
        """Close every door; the tokens open nothing afterwards."""
        doors, self._open = list(self._open.values()), {}
        for door in doors:
            if self._access:
                await self._access.close(door)
