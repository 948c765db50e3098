"""The teams of the deployed policy, whose accounts and managed folders are checked like all others."""

from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.records import read_json
from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.deploy.doctor.finding import DoctorFinding, unknown
from trainmaster.deploy.doctor.repair import redeploy
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT

if TYPE_CHECKING:
    from google.cloud.storage import Client as StorageClient


def teams_of(
    storage: "StorageClient", ledger_bucket: str, deployment: ExaminedDeployment
) -> tuple[tuple[str, ...], list[DoctorFinding]]:
    """The names of the teams, or none and why they are unknown.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    try:
        document = read_json(storage, ledger_bucket, DEPLOYMENT_OBJECT)
    except NotFound as damaged:
        return (), [_unknown(str(damaged), deployment)]
    if document is None:
        return (), [_unknown(f"the ledger has no {DEPLOYMENT_OBJECT}", deployment)]
    policy = document.get("policy")
    teams = policy.get("teams") if isinstance(policy, dict) else None
    return tuple(map(str, teams)) if isinstance(teams, dict) else (), []


def _unknown(why: str, deployment: ExaminedDeployment) -> DoctorFinding:
    return unknown("permissions of teams", why, redeploy(deployment))
