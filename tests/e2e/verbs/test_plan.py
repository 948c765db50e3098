"""`plan` asks the running stack, and changes nothing on it."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.e2e.project import Project, request
from tests.e2e.verbs.conftest import PROJECT, Trainmaster
from trainmaster.client.submission.terms import schema

pytestmark = pytest.mark.slow


def test_the_planned_job_is_the_one_that_the_service_submits(
    trainmaster: Trainmaster, stack: Project, trained: dict[str, Any], tmp_path: Path
) -> None:
    file = tmp_path / "trained.yaml"
    file.write_text(request(PROJECT))
    runs = set(stack.records())
    done = trainmaster("plan", str(file), "-o", "json")
    assert done.status == 0, done.err
    found = json.loads(done.out)
    jsonschema.validate(found, schema("plan.v1"))
    assert (found["outlook"]["verdict"], found["outlook"]["behind"]) == ("starts", [])
    (seen,) = found["seen"]
    assert (seen["run_id"], seen["same_request"]) == (trained["run_id"], True)
    assert found["request"] == trained["request"]["document"]
    (job,) = stack.jobs(trained["run_id"])
    body = json.dumps(found["jobs"][0]["body"]).replace("dry-run", trained["run_id"])
    planned = type(job).from_json(body)
    assert planned.job_spec == job.job_spec
    assert dict(planned.labels) == dict(job.labels)
    assert set(stack.records()) == runs
