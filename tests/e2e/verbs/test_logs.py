"""`trainmaster logs` against a running stack."""

import json
from typing import Any

from tests.e2e.verbs.conftest import Trainmaster


def test_the_log_of_a_run_begins_and_ends_with_the_services_lines(
    trainmaster: Trainmaster, trained: dict[str, Any]
) -> None:
    done = trainmaster("logs", trained["run_id"])
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "service | Waiting for job to be provisioned."
    assert lines[-1] == "service | Job completed successfully."


def test_following_returns_with_the_run_and_json_names_its_job(
    trainmaster: Trainmaster, trained: dict[str, Any]
) -> None:
    done = trainmaster("logs", "requests/trained.yaml", "--follow", "-o", "json")
    assert done.status == 0, done.err
    documents = [json.loads(line) for line in done.out.splitlines()]
    assert {each["job_id"] for each in documents} == {trained["job"]["name"].rpartition("/")[2]}
