"""Rules on a running stack, whose events arrive as they would in the cloud."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest
from google.cloud.aiplatform_v1.types import JobState

from .data_events import data_event, post
from .project import ENDED, ROOT, Project, image_uri

pytestmark = pytest.mark.slow


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
    return loaded


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


def test_a_burst_of_uploads_starts_one_run(project: Project) -> None:
    data = f"{project.id}-data"
    watched = {"new_data": {"objects": f"gs://{data}/burst/**", "min_objects": 40, "quiet_s": 1}}
    accepted(project, "burst", watched, request=tiny(project, "burst", "--tag=loss-${data.count}"))
    with ThreadPoolExecutor(8) as pool:
        bucket = project.storage.bucket(data)
        list(pool.map(lambda n: bucket.blob(f"burst/{n}.jpg").upload_from_string(b"x" * n), range(40)))
    (run,) = ended_runs(project, "burst", 1)
    assert run["state"] == "succeeded"
    assert run["request"]["document"]["args"] == ["--tag=loss-40"]


def test_a_schedule_fires_at_a_tick(project: Project) -> None:
    accepted(
        project, "clock", {"schedule": {"cron": "* * * * *"}}, request=tiny(project, "clock"), cooldown_s=3600
    )
    (run,) = project.eventually(lambda: runs_of(project, "clock"), "the minute has turned", deadline_s=180)
    assert run["source"]["condition"] == "schedule"
    project.storage.bucket(project.inbox).blob("rules/clock.json").delete()  # it would fire among other tests


def test_a_pushed_image_is_run_by_its_digest(project: Project) -> None:
    repository = image_uri(project.id)
    accepted(
        project,
        "image",
        {"new_image": {"repository": repository, "tag": "stable"}},
        request=tiny(project, "image", image="${image.uri}"),
    )
    digest = f"{repository}@sha256:{'0a' * 32}"
    push = {"action": "INSERT", "digest": digest, "tag": f"{repository}:stable"}
    for _ in range(2):
        project.publish("gcr", json.dumps(push).encode())
    (run,) = ended_runs(project, "image", 1)
    assert run["state"] == "succeeded"
    (job,) = project.jobs(run["run_id"])
    assert job.job_spec.worker_pool_specs[0].container_spec.image_uri == digest


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


def test_a_chain_of_models_runs_one_after_the_other(project: Project) -> None:
    upstream = {"upstream": {"model_name": "first", "event": "succeeded"}}
    accepted(project, "chain-a", {"manual": {}}, request=tiny(project, "first"))
    accepted(project, "chain-b", upstream, request=tiny(project, "second", "--tag=${upstream.run_id}"))
    fire(project, "chain-a")
    (first,) = ended_runs(project, "chain-a", 1)
    (second,) = ended_runs(project, "chain-b", 1)
    assert (first["state"], second["state"]) == ("succeeded", "succeeded")
    assert second["request"]["document"]["args"] == [f"--tag={first['run_id']}"]


def fire(project: Project, rule_id: str) -> None:
    project.publish("trainmaster-requests", json.dumps({"fire": {"rule": rule_id}}).encode())


def test_an_order_dropped_as_a_file_fires_the_rule_and_one_for_no_rule_is_reported(project: Project) -> None:
    accepted(project, "by-hand", {"manual": {}}, request=tiny(project, "by-hand"))
    project.upload("requests/fire.yaml", "fire: {rule: by-hand}")
    (run,) = ended_runs(project, "by-hand", 1)
    assert run["state"] == "succeeded"
    project.upload("requests/fire-none.yaml", "fire: {rule: by-hnd}")
    status = project.final_status("requests/fire-none.yaml")
    assert status["state"] == "rejected"
    assert "did you mean 'by-hand'" in project.record(status["run_id"])["problems"][0]


def test_faulty_rules_are_reported_when_they_are_dropped(project: Project) -> None:
    def reported(rule_id: str, *conditions: Mapping[str, Any], **more: object) -> dict[str, str]:
        status = accept(project, rule_id, *conditions, **more)
        assert status["state"] == "refused", status
        report = project.document(
            project.ledger, status["report_uri"].removeprefix(f"gs://{project.ledger}/")
        )
        jsonschema.validate(report, schema("rejection_report.v1"))
        assert report is not None
        return {fault["path"]: fault["problem"] + fault.get("found", "") for fault in report["faults"]}

    sound = tiny(project, "faulty")
    zone = reported(
        "zone", {"schedule": {"cron": "0 3 * * 1", "time_zone": "Europe/Amsterdm"}}, request=sound
    )
    assert "unknown time zone" in zone["$.when[0].schedule.time_zone"]
    policy = reported("policy", {"manual": {}}, request={**sound, "image": "docker.io/some/miner"})
    assert "$.request.image" in policy
    one, two = tiny(project, "loop-one"), tiny(project, "loop-two")
    accepted(project, "loop-1", {"upstream": {"model_name": "loop-two", "event": "succeeded"}}, request=one)
    loop = reported("loop-2", {"upstream": {"model_name": "loop-one", "event": "succeeded"}}, request=two)
    (told,) = loop.values()
    assert "loop-1" in told
    assert "loop-2" in told


def test_a_queued_firing_runs_when_the_one_before_it_ended(project: Project) -> None:
    gate = f"gs://{project.models}/gates/queue"
    accepted(
        project,
        "queue",
        {"manual": {}},
        request=tiny(project, "queue", f"--wait-for={gate}"),
        while_running="queue_one",
    )
    fire(project, "queue")
    project.eventually(lambda: is_running(project, "queue", 1), "the first run is running")
    fire(project, "queue")
    project.eventually(lambda: held(project, "queue"), "the second firing is held back")
    assert len(runs_of(project, "queue")) == 1
    project.storage.bucket(project.models).blob("gates/queue").upload_from_string("go")
    runs = ended_runs(project, "queue", 2)
    assert [run["state"] for run in runs] == ["succeeded", "succeeded"]


def test_a_replaced_run_is_cancelled(project: Project) -> None:
    gate = f"gs://{project.models}/gates/replace"
    accepted(
        project,
        "replace",
        {"manual": {}},
        request=tiny(project, "replace", f"--wait-for={gate}"),
        while_running="replace",
    )
    fire(project, "replace")
    project.eventually(lambda: is_running(project, "replace", 1), "the first run is running")
    fire(project, "replace")
    project.eventually(lambda: is_running(project, "replace", 2), "the second run is running")
    project.storage.bucket(project.models).blob("gates/replace").upload_from_string("go")
    runs = ended_runs(project, "replace", 2)
    assert [run["state"] for run in runs] == ["cancelled", "succeeded"]


def is_running(project: Project, rule_id: str, firing: int) -> bool:
    """Whether the job of that firing is running; its record may not say so yet."""
    runs = [run for run in runs_of(project, rule_id) if run["source"]["firing"] == firing]
    return any(job.state == JobState.JOB_STATE_RUNNING for run in runs for job in project.jobs(run["run_id"]))


def held(project: Project, rule_id: str) -> dict[str, Any] | None:
    status = project.status(f"rules/{rule_id}.json")
    found: dict[str, Any] | None = status.get("held") if status else None
    return found


def test_a_rule_is_retired_with_its_file(project: Project) -> None:
    accepted(project, "short-lived", {"manual": {}}, request=tiny(project, "short-lived"))
    project.storage.bucket(project.inbox).blob("rules/short-lived.json").delete()

    def retired() -> bool:
        status = project.status("rules/short-lived.json")
        return bool(status and status["state"] == "retired")

    project.eventually(retired, "the rule is retired")


def test_data_events_write_together_and_start_one_run(project: Project) -> None:
    """Five hundred events from eight clients at once, sent directly to the function."""
    data = f"{project.id}-data"
    watched = {"new_data": {"objects": f"gs://{data}/flood/**", "min_objects": 500, "quiet_s": 1}}
    accepted(project, "flood", watched, request=tiny(project, "flood", "--tag=loss-${data.count}"))
    log = project.state / "logs" / "on-data-arrived.log"
    before = log.read_text().count("arrivals recorded")
    url = project.function_url("on-data-arrived")

    def deliver(number: int) -> int:
        return post(url, data_event(data, f"flood/{number}.jpg", number + 1))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(deliver, [*range(500), *range(0, 500, 50)]))
    assert set(answers) == {200}
    (run,) = ended_runs(project, "flood", 1)
    assert run["request"]["document"]["args"] == ["--tag=loss-500"]  # those delivered twice are counted once
    assert log.read_text().count("arrivals recorded") - before < 500
