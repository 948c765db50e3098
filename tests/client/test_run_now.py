"""A live run says how far it is, when it will end, and what that means for its timeout and its cost."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.cli.runs.records import run_of, running
from tests.client.logged import Logged, logged_context
from tests.client.served import no_jobs, run_record
from tests.client.test_lanes import line
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from tests.narrowing import instance_of, present
from trainmaster.client.clients import Clients
from trainmaster.client.context import context_of_state
from trainmaster.client.find import Run, read_run
from trainmaster.client.logs.progress import TrainingProgress
from trainmaster.client.shown.run_lines import progress_facts, result_facts
from trainmaster.client.watch.now import with_progress
from trainmaster.client.watch.sighting import RunWatch
from trainmaster.orchestrator.core.documents.codec import encoded

RUN = "cassava-20260301t120000-eb46bb303f"
BEGAN = datetime(2026, 11, 23, 3, tzinfo=UTC)


logged = fixture_of(logged_context, scope="function")


def test_status_has_the_progress_that_the_log_reports_now(logged: Logged) -> None:
    logged.record(RUN, job_id="1")
    for epoch in (1, 2):
        logged.write("1", 10 * epoch, "workerpool0-0", textPayload=f"Epoch {epoch}/5")
        logged.write("1", 10 * epoch + 9, "workerpool0-0", textPayload="8/8 - 9s - 1s/step - loss: 0.5")
    done = logged.served.trainmaster("status", RUN, "-o", "json", "--verbose")
    document = json.loads(done.out)
    assert_valid(document, "run_record.v2")
    reached = document["progress"]
    assert (reached["progress_percentage"], reached["estimated_remaining_seconds"]) == (40, 28)
    assert reached["metrics"] == {"loss": 0.5}
    assert "last_updated_time" in reached
    assert "Storage operations: 1." in done.err
    assert "progress     40 %" in logged.served.trainmaster("status", RUN).out


@pytest.mark.parametrize("state", ["cancelled", "failed", "succeeded"])
def test_a_run_that_ended_early_keeps_the_last_metrics_of_its_log(logged: Logged, state: str) -> None:
    ended = run_record("failed", state=state)
    ended["job"]["name"] = "projects/1/locations/us-central1/customJobs/1"
    logged.served.write("ledger", f"runs/{RUN}.json", ended)
    logged.write("1", 10, "workerpool0-0", textPayload="epoch 1/5: loss 0.5")
    document = json.loads(logged.served.trainmaster("status", RUN, "-o", "json").out)
    assert_valid(document, "run_record.v2")
    kept = {"metrics": {"loss": 0.5}} if state != "succeeded" else None
    assert document.get("progress") == kept
    assert ("metrics      loss 0.5" in logged.served.trainmaster("status", RUN).out) is (kept is not None)


def live() -> Run:
    document = running().document
    document["job"] |= {"start_time": BEGAN.isoformat().replace("+00:00", "Z")}
    document["request"]["document"]["scheduling"] = {"timeout_s": 3600}
    return run_of(document)


def reported(*epochs: int) -> TrainingProgress:
    training = TrainingProgress()
    for epoch in epochs:
        training = training.after(line(600 * epoch, f"epoch {epoch}/10: loss 0.5"))
    return training


def test_a_run_that_will_exceed_its_timeout_and_what_it_will_cost_are_warned_of() -> None:
    now = BEGAN + timedelta(seconds=1200)
    facts = dict(progress_facts(with_progress(live(), reported(1, 2)).record, now))
    assert facts["progress"] == [
        "20 %, about 1h 20m left",
        "will exceed timeout_s (3600) at this pace: it is cancelled in 40m",
        "will cost about 2.08 USD at this pace",
    ]


def test_without_a_pace_only_the_share_is_known_and_an_ended_run_has_none() -> None:
    one = with_progress(live(), reported(1))
    assert dict(progress_facts(one.record, BEGAN)) == {"progress": ["10 %"]}
    assert one.document["progress"]["metrics"]["loss"] == 1.25  # metrics.json says so
    ended = run_of(run_record("failed"))
    assert "progress" not in dict(result_facts(with_progress(ended, reported(1, 2)).record, BEGAN))
    assert with_progress(live(), TrainingProgress()) == live()


def test_a_run_that_waits_for_its_next_job_shows_no_times_of_the_one_before(tmp_path: Path) -> None:
    with no_jobs() as vertex_url, logged_context(tmp_path, VERTEX_EMULATOR_HOST=vertex_url) as logged:
        served = logged.served
        with Clients(present(context_of_state(served.folder / ".trainmaster"))) as clients:
            logged.record(RUN, job_id="1")
            run = read_run(clients, RUN)
            document = instance_of(dict, encoded(run.record))
            started = {**document, "job": {**document["job"], "start_time": document["updated_at"]}}
            served.write("ledger", f"runs/{RUN}.json", started)
            watch = RunWatch(clients, run)
            assert watch.look().job_started_at is None  # the run as it was found
            assert watch.look().job_started_at is not None
            logged.record(RUN, "waiting")
            seen = watch.look()
    assert (seen.job_name, seen.job_state, seen.job_started_at) == ("", None, None)
