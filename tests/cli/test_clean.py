"""`trainmaster clean` on a real storage server, with records of old runs; tests/e2e/test_how_to_pages.py removes some."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import PROJECT, Served, deployment, run_record, served_context
from trainmaster.client.submission.terms import schema
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT, record_object

FIRST, SECOND = (replace(row(n), run_id=f"cassava-20260301t12000{n}-000000000{n}") for n in (1, 2))


@pytest.fixture
def context(tmp_path: Path) -> Iterator[Served]:
    with served_context(tmp_path, publishes=True) as served:
        for each in (FIRST, SECOND):
            output = f"gs://{PROJECT}-models/cassava/{each.run_id}"
            record = run_record(run_id=each.run_id)
            record["request"]["output_uri"] = output
            record["model"]["uri"] = f"{output}/model/"
            del record["completion"]["registration"]
            served.write("ledger", record_object(each.run_id), record)
            write_row(served, each)
            served.write("models", f"cassava/{each.run_id}/model/weights", {"a": 1})
        yield served


def keep(context: Served, **retention: object) -> None:
    document = deployment()
    document["policy"]["retention"] = retention
    context.write("ledger", DEPLOYMENT_OBJECT, document)


def test_the_plan_names_what_goes_with_its_size_and_why_the_rest_stays(context: Served) -> None:
    keep(context, runs={"older_than_days": 30}, models={"older_than_days": 30})
    shown = context.trainmaster("clean", "--plan")
    assert [line.split() for line in shown.out.splitlines()] == [
        ["MODEL", "RUNS", "CHECKPOINTS", "MODELS", "OBJECTS", "SIZE"],
        ["cassava", "1", "0", "1", "1", "8", "bytes"],
    ]
    assert shown.err.splitlines() == [
        "1 model kept: it is the newest model of its name",
        "1 run kept: its model stays",
        "Of 1 run: 1 object of the models bucket, 8 bytes.",
    ]
    plan = json.loads(context.trainmaster("clean", "--plan", "-o", "json").out)
    jsonschema.validate(plan, schema("clean_plan.v1"))
    assert [(run["run_id"], run["parts"]) for run in plan["runs"]] == [
        (SECOND.run_id, []),
        (FIRST.run_id, ["runs", "models"]),
    ]


def test_a_damaged_record_is_passed_over_and_named(context: Served) -> None:
    keep(context, runs={"older_than_days": 30}, models={"older_than_days": 30})
    context.write("ledger", record_object(SECOND.run_id), {"schema": "run_record.v2", "run_id": 1})
    plan = context.trainmaster("clean", "--plan")
    assert f"passed over: The record of {SECOND.run_id} is damaged" in plan.err
    document = json.loads(context.trainmaster("clean", "--plan", "-o", "json").out)
    jsonschema.validate(document, schema("clean_plan.v1"))
    assert [run["run_id"] for run in document["runs"]] == [FIRST.run_id]
    assert len(document["unreadable"]) == 1


def test_nothing_is_ordered_without_a_policy_or_a_yes(context: Served) -> None:
    refused = context.trainmaster("clean", "--yes")
    assert (refused.status, "The policy has no `retention`" in refused.err) == (2, True)
    keep(context, models={"keep_last": 1})
    unasked = context.trainmaster("clean")
    assert (unasked.status, "--yes" in unasked.err) == (2, True)
    keep(context, models={"keep_last": 2})
    assert context.trainmaster("clean").status == 0  # nothing goes, so no one is asked
