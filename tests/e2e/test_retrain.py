"""Rules on a running stack, whose events arrive as they would in the cloud."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from trainmaster.client.submission.terms import schema

from .data_events import data_event, post
from .project import ENDED, Project, image_uri

pytestmark = pytest.mark.slow


def accept(project: Project, rule_id: str, condition: Mapping[str, Any], *args: str) -> None:
    """Drop a rule with a run of the tiny image, and wait until it is accepted."""
    request = {
        "model_name": rule_id,
        "image": f"{image_uri(project.id)}:1",
        "args": list(args),
        "cluster": {"chief": {"machine": "n1-standard-4"}},
    }
    name = f"rules/{rule_id}.json"
    project.upload(name, json.dumps({"when": [condition], "request": request}))
    status = project.eventually(lambda: project.status(name), f"an answer to {name}")
    jsonschema.validate(status, schema("rule_status.v1"))
    assert status["state"] == "accepted", status


def ended_run(project: Project, rule_id: str) -> dict[str, Any]:
    """The rule's only run, once it has ended."""

    def ended() -> list[dict[str, Any]] | None:
        every = project.records().values()
        runs = [each for each in every if each["source"].get("rule_id") == rule_id]
        return runs if runs and all(run["state"] in ENDED for run in runs) else None

    (run,) = project.eventually(ended, f"the run of {rule_id} has ended")
    jsonschema.validate(run, schema("run_record.v2"))
    return run


def test_data_events_write_together_and_start_one_run(project: Project) -> None:
    """Five hundred events from eight clients at once, sent directly to the function, of a bucket that sends none itself."""
    data = f"{project.id}-flood"
    bucket = project.storage.create_bucket(data)
    watched = {"new_data": {"objects": f"gs://{data}/flood/**", "min_objects": 500, "quiet_s": 1}}
    accept(project, "flood", watched, "--tag=loss-${data.count}")
    log = project.state / "logs" / "on-data-arrived.log"
    before = log.read_text().count("arrivals recorded")
    url = project.function_url("on-data-arrived")

    def write(number: int) -> int:
        blob = bucket.blob(f"flood/{number}.jpg")
        blob.upload_from_string(b"1")
        return int(blob.generation)

    def deliver(number: int) -> int:
        return post(url, data_event(data, f"flood/{number}.jpg", generations[number], size_bytes=1))

    with ThreadPoolExecutor(8) as pool:
        generations = list(pool.map(write, range(500)))
        answers = list(pool.map(deliver, [*range(500), *range(0, 500, 50)]))
    assert set(answers) == {200}
    run = ended_run(project, "flood")
    assert run["request"]["document"]["args"] == ["--tag=loss-500"]  # those delivered twice are counted once
    assert log.read_text().count("arrivals recorded") - before < 500
