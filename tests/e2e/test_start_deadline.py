"""A run whose job does not start in time moves to the next candidate, and only one of its jobs ever runs."""

from pathlib import Path

import pytest

from tests.stack.injections.conftest import account, ask

from .project import ROOT, request, running_project
from .topologies import quick_topology

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
ELSEWHERE = "europe-west4"


def test_a_job_that_is_held_pending_makes_room_for_the_second_region(tmp_path: Path) -> None:
    policy, shipped = tmp_path / "policy.yaml", (ROOT / "functions" / "policy.yaml").read_text()
    policy.write_text(shipped.replace('regions: ["${region}"]', f'regions: ["${{region}}", {ELSEWHERE}]'))
    options = ("--topology", str(quick_topology(tmp_path)), "--policy", str(policy), "--tick-s", "1")
    with running_project(tmp_path / "state", *options, project="e2e-deadline") as project:
        vertex, match = project.env["VERTEX_EMULATOR_HOST"], f"{project.region}/*"
        ask(vertex, {"name": "full", "at": "vertex.jobs", "kind": "hold_pending", "match": match})
        document = request(project.id, scheduling={"start_within_s": 2}, fallbacks=[{"region": ELSEWHERE}])
        project.upload("requests/moves.yaml", document)
        done = project.final_status("requests/moves.yaml")
        assert done["state"] == "succeeded"
        assert account(vertex, "full")["struck"] == 1
        jobs = {region: project.jobs(done["run_id"], region) for region in (project.region, ELSEWHERE)}
        (held,), (won,) = jobs.values()
        assert (held.state.name, bool(held.start_time)) == ("JOB_STATE_CANCELLED", False)
        assert (won.state.name, bool(won.start_time)) == ("JOB_STATE_SUCCEEDED", True)
        assert held.end_time <= won.create_time
