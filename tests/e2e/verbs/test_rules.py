"""`rules`, `champions` and `cancel` change what they say, and nothing else."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.e2e.project import Project, request
from tests.e2e.verbs.conftest import PROJECT, Trainmaster
from trainmaster.client.submission.terms import schema

pytestmark = pytest.mark.slow


def rule(path: Path, model_name: str, *conditions: dict[str, Any], **more: object) -> Path:
    asked = json.loads(request(PROJECT, model_name=model_name))
    path.write_text(json.dumps({"when": conditions, "request": asked, **more}))
    return path


def test_a_rule_is_applied_listed_fired_held_back_and_removed(
    trainmaster: Trainmaster, stack: Project, tmp_path: Path
) -> None:
    nightly = {"schedule": {"cron": "0 3 * * *", "time_zone": "Europe/Amsterdam"}}
    file = rule(tmp_path / "nightly.yaml", "nights", nightly, {"manual": {}}, cooldown_s=3600)
    applied = trainmaster("rules", "apply", str(file))
    assert (applied.status, applied.out) == (0, "nightly accepted\n"), applied.err
    assert "in the local stack on" in applied.err

    listed = trainmaster("rules", "ls")
    assert "schedule 0 3 * * * Europe/Amsterdam, manual" in listed.out, "whole in a pipe"
    views = json.loads(trainmaster("rules", "ls", "-o", "json").out)
    (view,) = [each for each in views if each["rule_id"] == "nightly"]
    jsonschema.validate(view, schema("rule_view.v1"))
    assert view["next_at"] > view["status"]["updated_at"]
    assert "nightly" in trainmaster("rules", "ls", "-o", "name").out.split()

    fired = trainmaster("rules", "fire", "nightly")
    assert fired.status == 0, fired.err
    run_id = fired.out.strip()
    assert stack.record(run_id)["source"]["rule_id"] == "nightly"
    assert trainmaster("wait", run_id).status == 0
    held = trainmaster("rules", "fire", "nightly")
    assert (held.status, held.out) == (1, "")
    assert "its cooldown lasts until" in held.err
    shown = trainmaster("rules", "show", "rules/nightly.yaml")
    assert f"by manual: {run_id}\n" in shown.out
    assert "held: its cooldown lasts until" in shown.out

    pausing = trainmaster("rules", "pause", "nightly")
    assert pausing.out == "nightly paused\n", pausing.err
    paused = trainmaster("rules", "fire", "nightly")
    assert (paused.status, paused.out) == (2, "")
    assert "it is paused. Resume it: trainmaster rules resume nightly" in paused.err
    assert trainmaster("rules", "resume", "nightly").out == "nightly accepted\n"

    assert trainmaster("rules", "rm", "nightly", "--yes").status == 0
    stack.eventually(
        lambda: (stack.status("rules/nightly.yaml") or {}).get("state") == "retired", "the rule is retired"
    )
    stack.eventually(
        lambda: "nightly" not in trainmaster("rules", "ls", "-o", "name").out.split(), "it is listed no more"
    )


def test_cancel_ends_a_running_run_and_no_run_if_one_is_unknown(
    trainmaster: Trainmaster, stack: Project, trained: dict[str, Any]
) -> None:
    stack.drop("requests/endless.yaml", request(PROJECT, f"--wait-for=gs://{stack.models}/never"))
    status = stack.eventually(
        lambda: (found := stack.status("requests/endless.yaml")) and found["state"] == "running" and found,
        "the run runs",
    )
    unknown = trainmaster("cancel", status["run_id"], "nothing-20260101t000000-0123456789")
    assert (unknown.status, unknown.out) == (3, "")
    assert stack.record(status["run_id"])["state"] == "running"
    ended = trainmaster("cancel", "endless.yaml", "--wait")
    assert (ended.status, ended.out) == (0, f"{status['run_id']} cancelled\n"), ended.err
    late = trainmaster("cancel", trained["run_id"])
    assert (late.status, late.out) == (0, f"{trained['run_id']}\n")
    assert "has already ended: succeeded" in late.err
