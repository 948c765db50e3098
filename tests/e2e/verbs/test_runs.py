"""`trainmaster ls`, `status`, `why` and `queue` against a running stack, and `ls` beside gcloud's list of jobs."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.e2e.verbs.conftest import Trainmaster
from trainmaster.client.submission.terms import schema

pytestmark = pytest.mark.slow


def test_a_run_is_listed_and_found_by_its_file(trainmaster: Trainmaster, trained: dict[str, Any]) -> None:
    listed = json.loads(trainmaster("ls", "--limit", "100", "-o", "json").out)
    Draft202012Validator(schema("run_list.v1")).validate(listed)
    (row,) = [each for each in listed["runs"] if each["run_id"] == trained["run_id"]]
    assert (row["state"], row["source"]) == ("succeeded", "upload")
    assert row["job_id"] == trained["job"]["name"].rpartition("/")[2]
    status = trainmaster("status", "requests/trained.yaml", "-o", "json")
    assert json.loads(status.out) == trained


def test_why_explains_a_run_to_its_model(trainmaster: Trainmaster, trained: dict[str, Any]) -> None:
    done = trainmaster("why", trained["run_id"])
    assert (done.status, done.err) == (0, "")
    for step in ("requests/trained.yaml#", trained["job"]["name"], trained["model"]["uri"]):
        assert step in done.out
    document = json.loads(trainmaster("why", trained["run_id"], "-o", "json").out)
    Draft202012Validator(schema("explanation.v1")).validate(document)
    assert document["run"]["model"] == trained["model"]


def test_an_idle_queue_shows_what_started(trainmaster: Trainmaster, trained: dict[str, Any]) -> None:
    done = trainmaster("queue", "-o", "json")
    assert done.status == 0
    document = json.loads(done.out)
    Draft202012Validator(schema("queue.v1")).validate(document)
    assert trained["run_id"] not in [each["run_id"] for each in document["waiting"]]
    assert document["caps"]["runs_per_hour"] >= document["started"]["this_hour"]
