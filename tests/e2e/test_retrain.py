"""Rules on a running stack, whose events arrive as they would in the cloud."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

from trainmaster.client.submission.terms import schema
from trainmaster.orchestrator.core.names import split_object_uri

from .data_events import data_event, post
from .project import ENDED, Project, image_uri

pytestmark = pytest.mark.slow


def tiny(project: Project, model_name: str, *args: str, image: str = "") -> dict[str, Any]:
    return {
        "model_name": model_name,
        "image": image or f"{image_uri(project.id)}:1",
        "args": list(args),
        "cluster": {"chief": {"machine": "n1-standard-4"}},
    }


def accept(project: Project, rule_id: str, *conditions: Mapping[str, Any], **more: object) -> dict[str, Any]:
    """The status of the rule, once it is answered."""
    name = f"rules/{rule_id}.json"
    generation = project.upload(name, json.dumps({"when": list(conditions), **more}))

    def answered() -> dict[str, Any] | None:
        status = project.status(name)
        return status if status and status["generation"] == generation else None

    status = project.eventually(answered, f"an answer to {name}")
    jsonschema.validate(status, schema("rule_status.v1"))
    return status


def accepted(project: Project, rule_id: str, *conditions: Mapping[str, Any], **more: object) -> None:
    status = accept(project, rule_id, *conditions, **more)
    assert status["state"] == "accepted", status


def runs_of(project: Project, rule_id: str) -> list[dict[str, Any]]:
    found = [each for each in project.records().values() if each["source"].get("rule_id") == rule_id]
    return sorted(found, key=lambda record: int(record["source"]["firing"]))


def ended_runs(project: Project, rule_id: str, count: int) -> list[dict[str, Any]]:
    """The rule's runs, once exactly `count` exist and all have ended."""

    def ended() -> list[dict[str, Any]] | None:
        runs = runs_of(project, rule_id)
        return runs if len(runs) >= count and all(run["state"] in ENDED for run in runs) else None

    runs = project.eventually(ended, f"{count} ended runs of {rule_id}; now {runs_of(project, rule_id)}")
    assert len(runs) == count
    for run in runs:
        jsonschema.validate(run, schema("run_record.v2"))
    return runs


def test_each_partition_starts_a_run_that_knows_its_files(project: Project) -> None:
    """Three days arrive at once, with the same bytes, as a writer of partitions leaves them."""
    data = f"{project.id}-data"
    watched = {"new_data": {"objects": f"gs://{data}/sales/**", "each": "folder", "quiet_s": 5}}
    request = {**tiny(project, "sales", "--tag=loss-1"), "env": {"MANIFEST": "${data.manifest_uri}"}}
    accepted(project, "sales", watched, request=request)
    days = [f"dt=2026-11-{day}" for day in (22, 23, 24)]
    bucket = project.storage.bucket(data)
    for day in days:
        for name in ("a.csv", "b.csv", "_SUCCESS"):
            bucket.blob(f"sales/{day}/{name}").upload_from_string(b"the same bytes")
    runs = ended_runs(project, "sales", 3)
    for day, run in zip(days, runs, strict=True):
        ledger, name = split_object_uri(run["request"]["document"]["env"]["MANIFEST"])
        lines = project.storage.bucket(ledger).blob(name).download_as_bytes().splitlines()
        uris = [json.loads(line)["uri"] for line in lines]
        assert uris == [f"gs://{data}/sales/{day}/{name}" for name in ("a.csv", "b.csv")]


def test_an_alert_of_cloud_monitoring_starts_a_run(project: Project) -> None:
    accepted(
        project,
        "drift",
        {"alert": {"policy": "line drift*"}},
        request=tiny(project, "drift", "--tag=${alert.incident_id}"),
    )
    for state in ("open", "closed"):
        project.publish("trainmaster-alerts", json.dumps(incident(project, state)).encode())
    (run,) = ended_runs(project, "drift", 1)
    assert run["state"] == "succeeded"
    assert run["request"]["document"]["args"] == ["--tag=0.m2k3"]


def incident(project: Project, state: str) -> dict[str, Any]:
    """As https://cloud.google.com/monitoring/support/notification-options shows it, version 1.2."""
    return {
        "incident": {
            "incident_id": "0.m2k3",
            "scoping_project_id": project.id,
            "url": "https://console.cloud.google.com/monitoring/alerting/incidents/0.m2k3",
            "started_at": 1577840461,
            "ended_at": None if state == "open" else 1577840990,
            "state": state,
            "summary": "Feature attribution drift is above the threshold of 0.3",
            "policy_name": "line drift (feature x)",
            "condition_name": "drift above 0.3",
            "resource": {"type": "aiplatform.googleapis.com/Endpoint", "labels": {"endpoint_id": "77"}},
            "metadata": {"system_labels": {}, "user_labels": {}},
        },
        "version": "1.2",
    }


def test_data_events_write_together_and_start_one_run(project: Project) -> None:
    """Five hundred events from eight clients at once, sent directly to the function, of a bucket that sends none itself."""
    data = f"{project.id}-flood"
    bucket = project.storage.create_bucket(data)
    watched = {"new_data": {"objects": f"gs://{data}/flood/**", "min_objects": 500, "quiet_s": 1}}
    accepted(project, "flood", watched, request=tiny(project, "flood", "--tag=loss-${data.count}"))
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
    (run,) = ended_runs(project, "flood", 1)
    assert run["request"]["document"]["args"] == ["--tag=loss-500"]  # those delivered twice are counted once
    assert log.read_text().count("arrivals recorded") - before < 500
