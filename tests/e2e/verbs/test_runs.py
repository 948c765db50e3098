"""`trainmaster ls`, `status`, `why` and `queue` against a running stack, and `ls` beside gcloud's list of jobs."""

import json
import os
import shutil
import subprocess
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.e2e.project import ROOT, Project, eventually
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


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_lists_the_jobs_of_the_same_runs(
    trainmaster: Trainmaster, stack: Project, trained: dict[str, Any]
) -> None:
    variables = f"{sys.executable} -m trainmaster stack env --state {stack.state}"
    script = (
        f'eval "$({variables})"\ngcloud ai custom-jobs list --format="value(displayName,name.basename())"'
    )

    def jobs_of_gcloud() -> dict[str, str]:
        done = subprocess.run(
            ["bash", "-euc", script], cwd=ROOT, capture_output=True, text=True, check=True, timeout=300,
            env={"PATH": os.environ["PATH"], "HOME": str(trainmaster.folder), "LANG": "C.UTF-8"},
        )  # fmt: skip
        return dict(line.split() for line in done.stdout.splitlines())

    def jobs_of_runs() -> dict[str, str]:
        listed = json.loads(trainmaster("ls", "--limit", "1000", "-o", "json").out)["runs"]
        jobs = [each for each in listed if each.get("job_kind") == "customJobs" and "job_id" in each]
        return {each["run_id"]: each["job_id"] for each in jobs}

    # Other tests' runs may be on their way: both lists are read until they agree.
    found = eventually(
        lambda: jobs if (jobs := jobs_of_gcloud()) == jobs_of_runs() else None, "both list the same jobs"
    )
    assert found[trained["run_id"]] == trained["job"]["name"].rpartition("/")[2]
