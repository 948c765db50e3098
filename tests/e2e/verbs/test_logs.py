"""`trainmaster logs`, `watch` and `download` against a running stack."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import Project, eventually, request
from tests.e2e.verbs.conftest import Trainmaster
from trainmaster.client.files.downloaded import LIST

pytestmark = pytest.mark.slow


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


def test_the_model_is_downloaded_as_it_is_on_record(
    trainmaster: Trainmaster, trained: dict[str, Any], tmp_path: Path
) -> None:
    done = trainmaster("download", trained["run_id"], str(tmp_path / "model"))
    assert done.status == 0, done.err
    added = {"export.json", LIST}
    sizes = [path.stat().st_size for path in (tmp_path / "model").rglob("*") if path.name not in added]
    assert sum(sizes) == trained["model"]["files"]["size_bytes"]


def test_a_run_is_watched_from_its_beginning(
    trainmaster: Trainmaster, stack: Project, trained: dict[str, Any]
) -> None:
    stack.drop("requests/watched.yaml", request(stack.id))
    eventually(
        lambda: (stack.status("requests/watched.yaml") or {}).get("run_id"), "the upload has started a run"
    )
    done = trainmaster("watch", "requests/watched.yaml")
    assert done.status == 0, done.err
    assert done.out.count("Record closed  succeeded: ") == 1
