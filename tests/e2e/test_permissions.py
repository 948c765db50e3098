"""Functions of a running stack have the permissions of their accounts and no more."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from trainstack.sandbox.probe import obstacle

from .project import Project, request

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(obstacle()), reason="this machine does not allow namespaces"),
]


@contextmanager
def taken(project: Project, **grant: str) -> Iterator[None]:
    """While the block runs, the deployment lacks a grant."""
    url = f"{project.env['IAM_EMULATOR_HOST']}/emulator/v1/taken-grants"
    httpx.post(url, json={"grants": [grant]}, timeout=60).raise_for_status()
    try:
        yield
    finally:
        httpx.delete(url, timeout=60).raise_for_status()


def test_a_function_that_lacks_a_grant_is_refused_until_it_has_it_again(project: Project) -> None:
    """Which shows that functions authenticate, so that all other tests prove the grants that they need."""
    member = f"serviceAccount:tm-on-request-uploaded@{project.id}.iam.gserviceaccount.com"
    log = project.state / "logs" / "on-request-uploaded.log"
    with taken(project, member=member, role="roles/storage.objectUser", resource="*-ledger"):
        project.upload("requests/denied.json", request(project.id))
        project.eventually(
            lambda: "does not have storage.objects." in log.read_text(errors="replace"),
            "a refusal in the log",
        )
    assert project.final_status("requests/denied.json")["state"] == "succeeded"
