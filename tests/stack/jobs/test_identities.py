"""Each replica of a job is a separate principal while the job runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from trainstack.gateway.identity import WorkloadIdentities
from trainstack.iam.principals import Tokens

from .conftest import PARENT, container

ACCOUNT = "trainer@p1.iam.gserviceaccount.com"
REPLICAS = ("workerpool0-0", "workerpool1-0")


def test_a_replica_is_a_principal_until_its_job_ends(start: Callable[..., Any], tmp_path: Path) -> None:
    tokens = Tokens()
    identities = WorkloadIdentities(
        tokens=tokens, project_id="p1", project_number="123", gateway_port=9, trust=tmp_path
    )
    with start(tokens=tokens, identities=identities) as stack:
        own = [{"name": "https_proxy", "value": "http://elsewhere:1"}]
        pools = [container("tell", "sleep=600", env=own) for _ in REPLICAS]
        job = stack.submit(*pools, service_account=ACCOUNT)
        stack.until(job.name, lambda _job: all(_environ(stack, job.name, each) for each in REPLICAS))
        environs = {each: _environ(stack, job.name, each) for each in REPLICAS}
        shown = {each: _token(environ["GCE_METADATA_HOST"]) for each, environ in environs.items()}
        job_id = job.name.rpartition("/")[2]
        for replica, token in shown.items():
            principal = tokens.principal_of(token)
            assert principal is not None
            assert (principal.kind, principal.name, principal.email) == (
                "replica",
                f"{job_id}/{replica}",
                ACCOUNT,
            )
            assert environs[replica]["https_proxy"] == f"http://replica:{token}@127.0.0.1:9"
            assert _asked(stack.url, token) == 200
        assert len(set(shown.values())) == len(REPLICAS)
        stack.jobs.cancel_custom_job(name=job.name)
        stack.ended(job.name)
        stack.until(job.name, lambda _job: not any(map(tokens.principal_of, shown.values())))
        for replica, token in shown.items():
            assert _asked(stack.url, token) == 401
            with pytest.raises(httpx.ConnectError):
                _token(environs[replica]["GCE_METADATA_HOST"])


def _environ(stack: Any, name: str, replica: str) -> dict[str, str]:
    """What the replica printed about its environment; empty before that."""
    try:
        found: dict[str, str] = stack.told(name, replica)["environ"]
    except StopIteration:
        return {}
    return found


def _token(host: str) -> str:
    path = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
    answer = httpx.get(path, headers={"Metadata-Flavor": "Google"}, timeout=60)
    return str(answer.json()["access_token"])


def _asked(url: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.get(f"{url}/v1/{PARENT}/customJobs", headers=headers, timeout=60).status_code
