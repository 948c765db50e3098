"""Every type of notice is in the schema, with its payload, and is written down once."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from tests.core.admission.test_actual_cost import record
from tests.narrowing import present
from trainmaster.orchestrator.core.champions.champion import Champion, champion_changed
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.notices.notice import (
    APPROVAL_NEEDED,
    CAP_REACHED,
    CHAMPION_PROMOTED,
    CHAMPION_ROLLED_BACK,
    RULE_QUARANTINED,
    RUN_RETRIED,
    RUN_TYPES,
    RUN_WASTEFUL,
    TEST,
    cap_reached,
    cloud_event,
    receiver_test,
    run_entered,
    run_retried,
    run_wasteful,
)
from trainmaster.orchestrator.core.retraining.book import parse_book
from trainmaster.orchestrator.core.retraining.rule import Quarantine, rule_quarantined
from trainmaster.orchestrator.core.runs.end import ChampionVerdict, Completion, Model, Rejection
from trainmaster.orchestrator.core.runs.job import Failure, JobState, RecordedJob
from trainmaster.orchestrator.core.runs.record import AbandonedJob, RunRecord, Step
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.runs.utilization import WasteFound

ROOT = Path(__file__).resolve().parents[3]
NOW, JOB = datetime(2026, 3, 1, 12, tzinfo=UTC), "projects/p/locations/us-central1/customJobs/"
SCHEMA = json.loads((ROOT / "schemas" / "notice.v1.schema.json").read_text())


def test_the_schema_has_exactly_these_types() -> None:
    others = (
        *(CHAMPION_PROMOTED, CHAMPION_ROLLED_BACK, APPROVAL_NEEDED, RULE_QUARANTINED, CAP_REACHED),
        *(RUN_RETRIED, RUN_WASTEFUL, TEST),
    )
    assert sorted(SCHEMA["properties"]["type"]["enum"]) == sorted([*RUN_TYPES.values(), *others])


def ended_run() -> RunRecord:
    """A run with all that a notice may report."""
    known = record()
    lost = AbandonedJob(job=f"{JOB}1", candidate=0, reason="gone", at=NOW, why="preemption")
    return replace(
        known,
        source=replace(known.source, team="vision"),
        history=(Step(state=RunState.FAILED, at=NOW),),
        job=RecordedJob(name=f"{JOB}2", state=JobState.FAILED),
        model=Model(uri="gs://models/m/", metrics={"accuracy": 0.5}),
        failure=Failure(message="out of memory", code=8),
        rejection=Rejection(report_uri="gs://ledger/rejected/1.json"),
        completion=Completion(champion=ChampionVerdict(promoted=False, reason="worse")),
        submission=replace(known.submission, abandoned_jobs=(lost,)),
    )


def example(name: str) -> Any:
    return json.loads((ROOT / "schemas" / "examples" / "valid" / name).read_text())


def test_notices_have_the_fields_of_the_schema() -> None:
    run, uri = ended_run(), "gs://ledger/runs/1.json"
    found = WasteFound(at=NOW, reason="it idles")
    champion = decoded(Champion, example("champion.v1.pending.json"))
    pending, rule = present(champion.pending), parse_book(example("rule_book.v1.one_rule.json")).rules[0]
    reigns = [(pending.reign, pending), (replace(pending.reign, number=len(champion.history) + 1), None)]
    champion, rule = replace(champion, team="vision"), replace(rule, team="vision")
    made = {
        "run": [run_entered(run, 0, uri), run_retried(run, uri), run_wasteful(run, found, uri)],
        "champion": [champion_changed(champion, reign, uri, waits) for reign, waits in reigns],
        "rule": [rule_quarantined(rule, 2, Quarantine(reason="it fails", at=NOW))],
        "cap": [cap_reached(run, "runs_per_hour/2026-11-21T13")],
        "test": [receiver_test("ops", "1", NOW)],
    }
    for name, notices in made.items():
        for notice in notices:
            event = cloud_event(notice, "//trainmaster/projects/p/locations/us-central1")
            Draft202012Validator(SCHEMA).validate(event)
        written = {field for notice in notices for field in notice.data}
        assert written == set(SCHEMA["$defs"][name]["properties"])
    quiet = replace(run, history=(Step(state=RunState.RUNNING, at=NOW),), job=None)
    assert run_entered(quiet, 0, uri).data.keys() == {"run_id", "state", "record_uri", "team", "model_name"}


def test_a_type_is_written_in_the_room_of_notices_alone() -> None:
    literal = re.compile(r"""["']trainmaster\.(run|champion|rule|cap|notice)\.""")
    product = [*(ROOT / "trainmaster").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    assert [path.name for path in product if literal.search(path.read_text())] == ["notice.py"]
