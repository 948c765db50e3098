"""`trainmaster study` shows a tuning, and says why it cannot."""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator

import pytest

from tests.client.study.jobs import HOSTILE, JOB, RUN, Jobs, served_jobs, trial, tuning_job


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with served_jobs(tmp_path_factory.mktemp("jobs")) as found:
        found.document = tuning_job(
            trial(1, 0.5),
            trial(2, 0.75),
            trial(3, state="INFEASIBLE", infeasibleReason=HOSTILE),
            displayName=HOSTILE,
        )
        yield found


def test_the_trials_are_a_table_whose_columns_are_whole_in_a_pipe(jobs: Jobs) -> None:
    for subject in (RUN, JOB):
        done = jobs.served.trainmaster("study", subject)
        heading, columns, first, *_, last = done.out.splitlines()
        assert heading == "Trials: accuracy, higher is better"
        assert columns.split()[:4] == ["trial", "state", "rate", "layers"]
        assert first.split()[:4] == ["1", "SUCCEEDED", "0.01", "1"]
        assert last == "3 trials: 2 succeeded, 1 infeasible. Best: trial 2, accuracy 0.75"


def test_the_request_of_the_best_trial_can_be_checked_and_submitted(jobs: Jobs) -> None:
    request = jobs.served.trainmaster("study", RUN, "--request").out
    checked = jobs.served.trainmaster("plan", "--for", "api", "-", text=request)
    assert checked.status == 0, checked.err
    assert "--layers=2" in checked.out
    assert "parameters" not in checked.out


def test_the_file_is_written_into_a_new_folder(jobs: Jobs) -> None:
    done = jobs.served.trainmaster("study", RUN, "--html", "new/folder/study.html")
    assert (done.status, done.out) == (0, "new/folder/study.html\n")
    assert (jobs.served.folder / "new/folder/study.html").is_file()


def test_a_file_that_cannot_be_written_is_refused_with_the_reason(jobs: Jobs) -> None:
    (jobs.served.folder / "plain.txt").touch()
    for name, said in {
        "": "--html must not be empty",
        "plain.txt/study.html": "Cannot write 'plain.txt",
    }.items():
        done = jobs.served.trainmaster("study", RUN, "--html", name)
        assert (done.status, done.out) == (2, "")
        assert said in done.err


def test_the_file_loads_nothing_runs_only_its_own_scripts_and_has_the_names_as_text(jobs: Jobs) -> None:
    done = jobs.served.trainmaster("study", RUN, "--html", "study.html")
    assert done.out == "study.html\n"
    page = (jobs.served.folder / "study.html").read_text()
    assert not re.search(
        r"""\s(src|href)=["'](?!data:text/csv;)""",
        re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL),
    )
    assert "<img" not in page.partition("<body>")[2].partition("<script>")[0]
    policy = html.unescape(page.partition('Content-Security-Policy" content="')[2].partition('"')[0])
    assert policy.startswith("default-src 'none'; ")
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 4
    for script in (*scripts, page.partition("<style>")[2].partition("</style>")[0]):
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert f"gs://models/horses/{RUN}/2/model/" in page
    assert (
        json.loads(page.partition('id="parallel-data">')[2].partition("</script>")[0])["axes"][2]["name"]
        == HOSTILE
    )
