"""A stack takes its injections from a file and over HTTP, strikes its own functions with them, and stays whole."""

from pathlib import Path

import httpx
import pytest

from tests.e2e.project import running_project
from tests.e2e.topologies import quick_topology

from .conftest import PATH, account, ask

PLAN = """
seed: 3
injections:
- {name: killed, at: functions.*, kind: kill_after, match: "*-inbox/requests/*", times: 1}
- {name: untold, at: storage.objects.insert, kind: error_after, match: "*-ledger/*", times: 1}
"""


@pytest.mark.slow
def test_a_request_is_answered_once_although_its_function_is_killed(tmp_path: Path) -> None:
    plan = tmp_path / "injections.yaml"
    plan.write_text(PLAN)
    arguments = (
        "--topology", str(quick_topology(tmp_path, timeout_s=60)), "--injections", str(plan),
        "--retry-min-s", "0.2", "--retry-max-s", "1", "--tick-s", "2",
    )  # fmt: skip
    with running_project(tmp_path / "state", *arguments, project="injections-1") as project:
        url = project.env["STORAGE_EMULATOR_HOST"]
        # Pub/Sub has no HTTP surface: every surface of the stack accepts the injections of all.
        ask(url, {"name": "twice", "at": "pubsub.publish", "kind": "duplicate", "times": 1}, seed=3)
        project.upload("requests/bad.yaml", "model_name: [unclosed")
        status = project.final_status("requests/bad.yaml")
        assert status["state"] == "rejected"
        assert len(list(project.storage.list_blobs(project.ledger, prefix="rejected/"))) == 1
        names = ("killed", "untold", "twice")
        project.eventually(
            lambda: all(account(url, name)["struck"] == 1 for name in names), "every injection strikes"
        )
        (untold_on,) = account(project.env["VERTEX_EMULATOR_HOST"], "untold")["on"]
        assert untold_on.startswith(f"storage.objects.insert {project.ledger}/")
        assert (
            httpx.delete(f"{project.env['LOGGING_EMULATOR_HOST']}{PATH}", timeout=60).json()["injections"]
            == []
        )
