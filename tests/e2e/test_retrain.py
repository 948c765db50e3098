"""Rules on a running stack: whatever they wait for comes the way the cloud would bring it."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest

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
    """The rule's runs, once so many have ended and none other is there."""

    def ended() -> list[dict[str, Any]] | None:
        runs = runs_of(project, rule_id)
        return runs if len(runs) >= count and all(run["state"] in ENDED for run in runs) else None

    runs = project.eventually(ended, f"{count} ended runs of {rule_id}; now {runs_of(project, rule_id)}")
    assert len(runs) == count
    for run in runs:
        jsonschema.validate(run, schema("run_record.v1"))
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
    assert run["request"]["args"] == ["--tag=loss-40"]
