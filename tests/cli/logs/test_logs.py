"""`trainmaster logs` on real storage and logging servers."""

import json
import re
import threading

import pytest

from tests.client.logged import Logged, logged_context, progress, stamp
from tests.client.served import run_record
from tests.client.test_lanes import line
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from trainmaster.cli.logs.follow import left_out_hint
from trainmaster.client.logs.read import LINES_MAX

FOLLOW_UP = {
    "attempt": "a",
    "lease_until": stamp(0),
    "began_at": stamp(0),
    "inputs": {},
    "output_uri": "gs://c/s",
}


logged = fixture_of(logged_context)


@pytest.fixture(scope="module")
def run(logged: Logged) -> str:
    """A run that has ended, with lines of every kind."""
    logged.record("flowers", "succeeded", job_id="1", tuning=run_record("tuned")["tuning"])
    stderr = {
        "attrs": {"tag": "workerpool1-0"},
        "levelname": "ERROR",
        "message": "2 lines:\n\x1b[31mred\x1b[0m",
    }
    logged.write("1", 1, textPayload="Job is running.")
    logged.write("1", 2, "workerpool0-0", **progress(5))
    logged.write("1", 3, "workerpool1-0", severity="ERROR", jsonPayload=stderr)
    logged.write("1", 4, "workerpool0-0", severity="WARNING", textPayload="[bold]disk[/bold] " + "x" * 300)
    logged.write("1", 5, "workerpool0-0", jsonPayload={"step": 3, "lr": 0.1})
    logged.write("1", 6, "workerpool0-0", trial="3", textPayload="of a trial")
    logged.write("1", 7, textPayload="Job completed successfully.")
    return "flowers"


def test_a_pipe_gets_every_line_whole_with_its_replica_and_without_colour(logged: Logged, run: str) -> None:
    done = logged.served.trainmaster("logs", run)
    assert done.status == 0, done.err
    assert done.out.splitlines() == [
        "service | Job is running.",
        "workerpool0-0 | epoch 1/2 step 5/20 loss 1.5",
        "workerpool1-0 | 2 lines:",
        "workerpool1-0 | red",
        "workerpool0-0 | WARNING [bold]disk[/bold] " + "x" * 300,
        'workerpool0-0 | {"step": 3, "lr": 0.1}',
        "3/workerpool0-0 | of a trial",
        "service | Job completed successfully.",
    ]


def test_json_lines_are_documents_of_the_schema(logged: Logged, run: str) -> None:
    done = logged.served.trainmaster("logs", run, "-o", "json")
    documents = [json.loads(line) for line in done.out.splitlines()]
    for document in documents:
        assert_valid(document, "log_line.v1")
    assert len(documents) == 7
    assert documents[1]["payload"]["event"] == "train_progress"
    assert documents[5]["trial_id"] == "3"


@pytest.mark.parametrize("limit", ["1", "3"])
def test_the_hints_of_a_limit_lead_back_to_the_first_line(logged: Logged, run: str, limit: str) -> None:
    parts: list[list[str]] = []
    before: list[str] = []
    while not parts or before:
        done = logged.served.trainmaster("logs", run, "--limit", limit, "-o", "json", *before)
        parts.insert(0, done.out.splitlines())
        before = re.findall(r"--before \S+", done.err)
        before = before[-1].split() if before else []
    whole = logged.served.trainmaster("logs", run, "-o", "json").out.splitlines()
    assert list(dict.fromkeys(line for part in parts for line in part)) == whole


def test_the_largest_limit_is_not_suggested_again() -> None:
    lines = [line(1, "", "service")]
    assert "--limit" not in left_out_hint(lines, LINES_MAX)
    assert left_out_hint(lines, LINES_MAX - 1).startswith(
        f"Earlier lines are left out. To see more than {LINES_MAX - 1}: --limit {LINES_MAX}."
    )


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (["--replica", "workerpool1-0"], 2),
        (["--trial", "3"], 1),
        (["--replica", "service"], 2),
        (["--since", "1s"], 0),
        (["--since", "2026-03-01"], 8),
        (["--replica", "chief"], 4),
        (["--before", "2026-03-01"], 0),
        (["--before", "1s"], 8),
    ],
)
def test_options_select_lines_and_an_empty_selection_is_reported(
    logged: Logged, run: str, options: list[str], count: int
) -> None:
    done = logged.served.trainmaster("logs", run, *options)
    assert (done.status, len(done.out.splitlines())) == (0, count)
    assert ("No line of the log is selected." in done.err) == (count == 0)


@pytest.mark.parametrize(("state", "status"), [("succeeded", 0), ("failed", 1)])
def test_following_a_run_that_has_ended_prints_its_log_and_returns_its_end(
    logged: Logged, state: str, status: int
) -> None:
    logged.record(f"ended-{state}", state, job_id=f"2{status}")
    logged.write(f"2{status}", 1, textPayload="Job is running.")
    done = logged.served.trainmaster("logs", f"ended-{state}", "-f")
    assert (done.status, done.out) == (status, "service | Job is running.\n")
    assert f"ended-{state} {'has ' * (state == 'succeeded')}{state}" in done.err


def test_following_waits_for_the_job_prints_what_comes_and_ends_with_the_run(logged: Logged) -> None:
    waiting = {
        "reason": "the quota is used up",
        "attempts": 3,
        "not_before": stamp(600),
        "rate_limited": False,
    }
    logged.record("slow", "waiting", admission={"slots": [], "waiting": waiting})

    def train() -> None:
        logged.record("slow", "running", job_id="3")
        logged.write("3", 1, "workerpool0-0", textPayload="learning")
        logged.record("slow", "failed", job_id="3")
        logged.write("3", 2, textPayload="Job failed.")

    timer = threading.Timer(0.5, train)
    timer.start()
    done = logged.served.trainmaster("logs", "slow", "--follow")
    timer.join()
    assert done.status == 1
    assert done.out.splitlines()[0] == "workerpool0-0 | learning"
    assert "slow is waiting and has no job yet: the quota is used up" in done.err


def test_a_replica_that_has_written_nothing_yet_leaves_the_selection_empty_not_the_log(
    logged: Logged,
) -> None:
    logged.record("quiet", "running", job_id="8")
    logged.write("8", 1, textPayload="Job is running.")
    assert (
        "No line of the log is selected."
        in logged.served.trainmaster("logs", "quiet", "--replica", "chief").err
    )


def test_a_line_of_the_local_stack_has_no_link_to_the_console(logged: Logged) -> None:
    logged.record("linked", "failed", job_id="7")
    error = "The replica workerpool0-0 exited with a non-zero status of 1."
    link = "To find out more about why your job exited please check the logs: https://console.cloud.google.com/logs"
    logged.write("7", 1, textPayload=f"{error} {link}")
    assert logged.served.trainmaster("logs", "linked").out == f"service | {error}\n"


def test_a_run_without_a_job_says_what_it_waits_for(logged: Logged) -> None:
    logged.record("reserved", "reserved")
    done = logged.served.trainmaster("logs", "reserved")
    assert (done.status, done.out) == (0, "")
    assert "reserved is reserved and has no job yet" in done.err


def test_the_jobs_that_score_and_try_out_the_model_have_logs_of_their_own(logged: Logged) -> None:
    scoring = {
        **FOLLOW_UP,
        "job": {"name": "projects/1/locations/us-central1/customJobs/82", "state": "JOB_STATE_FAILED"},
    }
    tried = {**FOLLOW_UP, "failure": "no program of ours loads it"}
    completion = {"steps_done": ["reason"], "evaluation": scoring, "smoke": tried}
    logged.record("scored", "succeeded", job_id="81", completion=completion)
    logged.write("81", 1, textPayload="of the training")
    logged.write("82", 2, "workerpool0-0", textPayload="of the evaluation")
    done = logged.served.trainmaster("logs", "scored", "--evaluation")
    assert done.out == "workerpool0-0 | of the evaluation\n"
    refused = logged.served.trainmaster("logs", "scored", "--smoke")
    assert (refused.status, refused.out) == (3, "")
    assert "The smoke test of scored has no job: no program of ours loads it" in refused.err


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["plain", "--evaluation"], 3, "plain has no evaluation"),
        (["plain", "--evaluation", "--follow"], 2, "--evaluation shows one job whole"),
        (["flowers", "--since", "soon"], 2, "expected a duration (30m, 2h, 7d) or a date or time"),
        (
            ["flowers", "--replica", "worker"],
            3,
            "It has workerpool0-0, workerpool1-0; service is Vertex AI itself",
        ),
        (["flowers", "--replica", "workerpool1-1", "--follow"], 3, "flowers has no replica 'workerpool1-1'"),
        (["plain", "--trial", "3"], 3, "plain is not a tuning, so it has no trials"),
        (["flowers", "--trial", "chief", "--follow"], 3, "flowers has no trial 'chief'"),
        (["flowers", "--limit", "0"], 2, "--limit"),
        (["flowers", "--before", "soon"], 2, "expected a duration (30m, 2h, 7d) or a date or time"),
        (["flowers", "--before", "1h", "-f"], 2, "--before selects lines of the past, and --follow new ones"),
        (["flowers", "--limit", "1000000"], 2, "--limit"),
        (["flowers", "-o", "yaml"], 2, "'text', 'json'"),
    ],
)
def test_bad_input_is_refused(logged: Logged, run: str, words: list[str], status: int, said: str) -> None:
    logged.record("plain", "succeeded", job_id="9")
    done = logged.served.trainmaster("logs", *words)
    assert (done.status, done.out) == (status, "")
    assert said in done.err
