"""`trainmaster why`, on a real storage server, with what the flows wrote."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import httpx
import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from tests.cli.runs.records import NOW, RUNS
from tests.cli.screens import assert_screen
from tests.cli.test_pools import a_context
from tests.client.logged import logged_context
from tests.client.rule_documents import example
from tests.client.served import PROJECT, Served, run_record, served_once
from tests.contract.test_retries import lose, priced_world, retried
from tests.core.shipped import assert_valid
from tests.narrowing import present
from tests.stack.jobs.conftest import container
from trainmaster.cli.runs.why import why_facts
from trainmaster.cli.table import fact_lines
from trainmaster.client.explaining.explanation import Explanation, explain_run
from trainmaster.client.find import Run
from trainmaster.client.runs.queue_listing import Waits
from trainmaster.client.shown.run_lines import job_facts
from trainmaster.client.shown.run_screen import run_facts
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.job_names import console_uri, job_id
from trainmaster.orchestrator.core.runs.end import ChampionVerdict
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

RUN = "cassava-20260301t120000-eb46bb303f"
CHAMPION = "b-20260301t121100-6024327c9f"
FIRING = {
    "kind": "rule",
    "event_id": "new_data/2026-03-01T12:00:00Z",
    "event_time": "2026-03-01T12:00:00Z",
    "received_at": "2026-03-01T12:00:01Z",
    "uri": "gs://inbox/rules/nightly.yaml",
    "generation": 7,
    "rule_id": "nightly",
    "firing": 3,
    "condition": "new_data",
    "template_uri": "gs://inbox/requests/cassava.yaml",
    "template_generation": 2,
    "firing_values": {
        "data.count": "200",
        "data.newest_uri": "gs://data/cassava/0199.jpg",
        "data.watermark": "2026-03-01T11:59:30.000000Z",
    },
}


def text_of(found: Explanation, width: int) -> str:
    lines = fact_lines(why_facts(found, NOW, is_local=False), width=width)
    return "".join(f"{click.unstyle(line)}\n" for line in lines)


def explained(record: RunRecord) -> Explanation:
    place = None
    if record.admission.waiting:
        place = Waits(
            position=2,
            run_id=record.run_id,
            priority=80,
            arrived_at=record.history[0].at,
            region="us-central1",
            quota_class="us-central1_nvidia_tesla_t4",
            not_before=record.admission.waiting.not_before,
            behind="flowers-20260301t115900-1b6d1c8e02",
        )
    return Explanation(record=record, place=place)


def test_a_script_that_has_started_has_a_list_of_its_packages() -> None:
    document = run_record("succeeded")
    document["request"]["document"]["script"] = {"file": "train.py", "archive": "gs://b/scripts/1.tar.gz"}
    uri = f"{document['request']['output_uri']}/installed.txt"
    found = explained(decoded(RunRecord, document))
    assert_valid(found.document, "explanation.v1")
    assert found.document["run"]["program"]["installed_uri"] == uri
    assert found.document["run"]["utilization"] == document["utilization"]
    assert uri in text_of(found, 200)
    assert "installed" not in text_of(explained(decoded(RunRecord, run_record("succeeded"))), 200)


@pytest.mark.parametrize("state", RUNS)
def test_the_screen_of_a_run_and_its_json(state: str) -> None:
    found = explained(RUNS[state]().record)
    assert_screen(f"why.{state}", text_of(found, 100))
    assert len(text_of(found, 120).splitlines()) <= 40
    assert_valid(found.document, "explanation.v1")


def test_a_job_in_vertex_ais_queue_says_what_it_waits_for() -> None:
    record = RUNS["running"]().record
    assert record.job is not None
    queued = replace(record, state=RunState.SUBMITTED, job=replace(record.job, state=JobState.QUEUED))
    now = present(record.job.create_time) + timedelta(minutes=130)
    for is_local in (True, False):
        lines = dict(job_facts(queued, now, is_local=is_local))["job"]
        assert lines[1] == "queued 2h 10m in us-central1"
        assert len(lines) == 2 + is_local
        assert len(dict(job_facts(record, now, is_local=is_local))["job"]) == 1
    for held_by, said in (
        ("", "once other jobs have ended"),
        ("the injection 'q'", "held by the injection 'q'"),
    ):
        (_, _, why) = dict(job_facts(queued, now, is_local=True, held_by=held_by))["job"]
        assert said in why


def test_on_a_stack_the_injection_that_holds_a_job_is_named(tmp_path: Path) -> None:
    with a_context(tmp_path, []) as context:
        host = present(context.clients.context.vertex_host)
        plan = {"name": "full", "at": "vertex.jobs", "kind": "hold_pending"}
        httpx.post(f"{host}/emulator/v1/injections", json=plan).raise_for_status()
        spec = {"worker_pool_specs": [container("print=x")]}
        place, jobs = f"projects/{PROJECT}/locations/us-central1", context.clients.jobs
        job = jobs.create_custom_job(
            parent=place, custom_job=CustomJob({"display_name": "j", "job_spec": spec})
        )
        submitted = run_record(
            "succeeded", state="submitted", job={"name": job.name, "state": "JOB_STATE_PENDING"}
        )
        run = Run(document=submitted, record=decoded(RunRecord, submitted))
        looks = (explain_run(context.clients, run, NOW) for _ in range(1000))
        found = next(look for look in looks if look.held_by)  # the job's thread asks for itself
        httpx.delete(f"{host}/emulator/v1/injections").raise_for_status()
        assert explain_run(context.clients, run, NOW).held_by == ""
    assert found.held_by == "the injection 'full' (hold_pending) of this stack"
    assert_valid(found.document, "explanation.v1")


def test_each_lost_or_moved_job_has_its_own_line_with_what_followed() -> None:
    world = priced_world()
    run_id = retried(world, fallbacks=[{"cluster": {"chief": {"machine": "n1-standard-8"}}}])
    queued = present(world.record(run_id).job).name
    world.clock.advance(timedelta(hours=3))
    world.reconcile()
    world.jobs.become(queued, JobState.CANCELLED)
    world.reconcile()
    lost = lose(world, run_id)
    record = world.record(run_id)
    facts = list(why_facts(Explanation(record=record), world.clock.now(), is_local=True))
    lines = dict(facts)["jobs before"]
    assert [label for label, _ in facts if label in ("tried", "problem")] == []
    assert lines[0].startswith(f"{job_id(queued)}, us-central1, n1-standard-4, 20")
    assert ": moved to the next candidate: it had not started by " in lines[0]
    assert lines[1].startswith(f"{job_id(lost.name)}, us-central1, 20")
    assert ": retry 1 of 2 after infrastructure: Internal error occurred. " in lines[1]
    assert lines[1].endswith(" It cost 2.10 USD.")
    clouds = dict(why_facts(Explanation(record=record), world.clock.now(), is_local=False))["jobs before"]
    assert clouds == [lines[0], console_uri(queued), lines[1], console_uri(lost.name)]


@served_once
def served(served: Served) -> None:
    served.write("ledger", f"runs/{RUN}.json", run_record("failed"))
    served.write("ledger", f"runs/{CHAMPION}.json", run_record("succeeded", run_id=CHAMPION, source=FIRING))
    champion = example("champion.v1.promoted")
    served.write("ledger", "champions/cassava-resnet50.json", champion)
    served.write("ledger", "champions/orphan.json", {**champion, "current": champion["history"][0]})


def test_a_champion_leads_back_to_the_last_object_that_it_learned_from(served: Served) -> None:
    done = served.trainmaster("why", "cassava-resnet50")
    assert done.status == 0
    for step in (
        "gs://champions/cassava-resnet50/b-20260301t121100-6024327c9f/",
        f"run          {CHAMPION}",
        "firing 3 of the rule nightly (condition new_data)",
        "gs://inbox/rules/nightly.yaml#7",
        "gs://inbox/requests/cassava.yaml#2",
        "200 objects since the firing before",
        "the last one: gs://data/cassava/0199.jpg",
    ):
        assert step in done.out
    document = json.loads(served.trainmaster("why", "cassava-resnet50", "-o", "json").out)
    assert_valid(document, "explanation.v1")
    assert document["champion"]["run_id"] == document["run"]["run_id"] == CHAMPION
    assert document["run"]["source"]["firing_values"]["data.newest_uri"] == "gs://data/cassava/0199.jpg"


def test_a_champion_whose_record_is_gone_is_still_explained(served: Served) -> None:
    done = served.trainmaster("why", "orphan")
    assert done.status == 0
    assert "its record is gone" in done.out


def test_a_run_on_record_costs_one_read(served: Served) -> None:
    done = served.trainmaster("why", RUN, "--verbose")
    assert done.status == 0
    assert "ValueError: no data in gs://data/cassava" in done.out
    assert "repair       check that the path or object that the error names exists" in done.out
    assert "Storage operations: 1." in done.err


def failed_without_lines(run_id: str) -> dict[str, Any]:
    record = run_record("failed", run_id=run_id)
    del record["failure"]["last_lines"]
    return record


def test_a_failure_without_lines_on_record_shows_the_end_of_the_log(tmp_path: Path) -> None:
    with logged_context(tmp_path) as logged:
        logged.served.write("ledger", "runs/broken.json", failed_without_lines("broken"))
        logged.write("1000", 1, "workerpool0-0", textPayload="from another replica")
        logged.write("1000", 2, "workerpool1-0", textPayload="MemoryError: 12 GB")
        done = logged.served.trainmaster("why", "broken")
    assert done.status == 0
    assert "last lines   of workerpool1-0:\n             MemoryError: 12 GB\n" in done.out
    assert "from another replica" not in done.out


def test_a_log_that_cannot_be_read_is_a_problem_and_no_failure_of_the_command(served: Served) -> None:
    served.write("ledger", "runs/broken.json", failed_without_lines("broken"))
    done = served.trainmaster("why", "broken")
    assert done.status == 0
    assert "problem      the log of the job cannot be read: " in done.out


def test_an_unknown_subject_names_the_lists_of_runs_and_of_champions(served: Served) -> None:
    said = served.trainmaster("why", "unknown").err.splitlines()
    assert [line.rpartition(": ")[2] for line in said] == ["trainmaster ls", "trainmaster champions ls"]


def test_status_and_why_show_the_verdict_on_the_model() -> None:
    run = RUNS["succeeded"]()
    assert run.record.completion is not None
    verdict = ChampionVerdict(promoted=False, reason="accuracy 0.6 is not better", compared_with="run-1")
    record = replace(run.record, completion=replace(run.record.completion, champion=verdict))
    lines = "champion     not promoted: accuracy 0.6 is not better\n             compared with run-1\n"
    assert lines in text_of(explained(record), 100)
    facts = run_facts(replace(run, record=record), NOW, is_local=False)
    assert lines in "".join(f"{click.unstyle(each)}\n" for each in fact_lines(facts, width=100))


def test_a_run_that_its_timeout_ended_is_not_shown_as_cancelled_by_a_user() -> None:
    record = replace(RUNS["failed"]().record, state=RunState.CANCELLED)
    assert record.failure is not None
    assert record.job is not None
    assert record.request is not None
    document = {**record.request.document, "scheduling": {"timeout_s": 8}}
    job = replace(record.job, state=JobState.CANCELLED, start_time=NOW - timedelta(seconds=8), end_time=NOW)
    words = "the job ran longer than its timeout of 8 s"
    ended = replace(
        record,
        job=job,
        request=replace(record.request, document=document),
        failure=replace(record.failure, message=words, last_lines=None),
    )
    shown = text_of(explained(ended), 100)
    assert f"timed out    {words}\n" in shown
    assert "repair       raise `scheduling.timeout_s`, or train for fewer steps; to continue" in shown


def test_a_cancelled_run_is_not_shown_as_failed() -> None:
    record = replace(RUNS["failed"]().record, state=RunState.CANCELLED)
    assert record.failure is not None
    words = "its cancellation was requested at 2026-03-01 12:05:00 UTC"
    ended = replace(record, failure=replace(record.failure, message=words, last_lines=None))
    assert f"cancelled    {words}\n" in text_of(explained(ended), 100)
    early = text_of(explained(replace(ended, failure=None, cancel_requested_at=NOW)), 100)
    assert "cancelled    as requested at 2026-03-01 12:30:00 UTC\n" in early
    assert "\nfailed " not in text_of(explained(ended), 100) + early
