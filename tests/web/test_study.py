"""The page of a study: its trials, charts and files, live and hostile ones too."""

import csv
import io
import json
import re
from html import escape
from typing import Any

import pytest

from tests.client.served import run_record
from tests.client.study.jobs import HOSTILE, JOB, LAYERS, RUN, Jobs, served_jobs, trial, tuning_job
from tests.fixtures import fixture_of
from tests.web.consoles import console_of
from tests.web.test_hostile import check

PAGE = f"/runs/{RUN}/study"


jobs = fixture_of(served_jobs)


class Shown:
    """The page of a study as its document says now."""

    def __init__(self, jobs: Jobs, *trials: dict[str, Any], query: str = "", **more: Any) -> None:
        jobs.document = tuning_job(*trials, **more)
        with console_of(jobs.served.clients) as browser:
            self.answer = browser.get(f"{PAGE}{query}")
        self.text = self.answer.text

    def data(self, name: str) -> Any:
        found = re.search(rf'id="{name}-data">(.*?)</script>', self.text, re.DOTALL)
        assert found is not None
        return json.loads(found[1])

    @property
    def order(self) -> list[str]:
        return re.findall(r'id="trial-(\w+)"', self.text)


def test_the_best_trial_its_parameters_and_the_command_that_trains_with_them_are_shown(jobs: Jobs) -> None:
    shown = Shown(jobs, trial(1, 0.5), trial(2, 0.75), trial(3, state="ACTIVE", endTime=None))
    best = shown.text.partition('id="best"')[2].partition("</section>")[0]
    assert "<dd>0.75</dd>" in best
    assert f"gs://models/horses/{RUN}/2/model/" in best
    assert f"trainmaster study {RUN} --request | trainmaster submit -" in best
    assert f"<code>trainmaster study {RUN}</code>" in shown.text
    assert "2 of 20</b><span>trials ended: 1 active, 2 succeeded" in shown.text
    assert "data-live" in shown.text


def test_curves_begin_at_step_0_and_mark_the_best_trial(jobs: Jobs) -> None:
    shown = Shown(jobs, trial(1, 0.5), trial(2, 0.75), trial(3, state="INFEASIBLE"))
    first, second = shown.data("curves")["series"]
    assert (first["name"], first["best"], first["points"][0]) == ("trial 2", True, [0, 0.0])
    assert "best" not in second


def test_parallel_axes_keep_scales_and_words_and_lines_their_gaps(jobs: Jobs) -> None:
    one = trial(1, 0.5)
    del one["parameters"][1]  # a conditional parameter that does not apply
    shown = Shown(jobs, one, trial(2, 0.75), trial(3, state="INFEASIBLE"))
    parallel = shown.data("parallel")
    rate, layers, word, result = parallel["axes"]
    assert (rate["scale"], rate["low"], layers["scale"]) == ("log", 0.0001, "linear")
    assert word == {"name": HOSTILE, "values": [HOSTILE, "sgd"]}
    assert (result["name"], result["low"], result["high"]) == ("accuracy", 0.5, 0.75)
    lines = {line["name"]: line for line in parallel["lines"]}
    assert lines["trial 1"]["values"] == [0.01, None, HOSTILE, 0.5]
    assert lines["trial 3"]["values"][-1] is None
    assert (lines["trial 3"]["tone"], lines["trial 3"]["dash"]) == (None, True)


def test_importance_is_shown_and_said_to_be_unknown_for_few_trials(jobs: Jobs) -> None:
    assert "needs 20 trials with a result, has 1" in Shown(jobs, trial(1, 0.5)).text
    shown = Shown(jobs, *(trial(n, n / 30) for n in range(1, 25)))
    name, value = shown.data("importance")["items"][0]
    assert (name, value > 0.8) == ("layers", True)


@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("", ["1", "2", "3", "4"]),
        ("?sort=result", ["3", "1", "2", "4"]),
        ("?sort=result&order=desc", ["2", "1", "3", "4"]),
        ("?sort=parameter%3Arate&order=desc", ["4", "1", "2", "3"]),
        ("?sort=trial&order=desc", ["4", "3", "2", "1"]),
        ("?rows=2", ["1", "2"]),
    ],
)
def test_the_table_is_sorted_by_the_query(jobs: Jobs, query: str, order: list[str]) -> None:
    shown = Shown(
        jobs, trial(1, 0.5), trial(2, 0.75), trial(3, 0.25), trial(4, state="INFEASIBLE"), query=query
    )
    assert shown.order == order
    assert ("Show more" in shown.text) == ("rows" in query)


def test_a_column_that_does_not_exist_is_refused_with_those_that_do(jobs: Jobs) -> None:
    shown = Shown(jobs, query="?sort=<b>")
    assert shown.answer.status_code == 400
    assert "expected trial, state, parameter:rate" in shown.text
    assert "<b>" not in shown.text


def test_hostile_names_and_reasons_stay_text(jobs: Jobs) -> None:
    hostile = trial(1, 0.5), trial(2, state="INFEASIBLE", infeasibleReason=HOSTILE * 1000)
    metric = {"metrics": [{"metricId": HOSTILE, "goal": "MAXIMIZE"}], "parameters": [LAYERS]}
    for shown in (Shown(jobs, *hostile), Shown(jobs, *hostile, displayName=HOSTILE, studySpec=metric)):
        check(shown.text)
        assert "&lt;img src=x" in shown.text
        assert len(shown.text) < 50_000


def test_a_study_without_trials_and_one_without_results_say_so(jobs: Jobs) -> None:
    empty = Shown(jobs)
    assert "No trials yet." in empty.text
    assert "No trial has started yet." in empty.text
    waits = Shown(jobs, trial(1, state="ACTIVE", startTime=None, endTime=None))
    assert "No trial has a result yet." in waits.text
    assert "No trial has reported accuracy yet." in waits.text
    assert '<td data-label="Took"></td>' in waits.text


def test_a_failed_tuning_shows_its_cause_and_the_likely_repair(jobs: Jobs) -> None:
    failed = run_record("failed", run_id="tuned-in-vain")
    failed["job"] = {**failed["job"], "name": JOB}
    jobs.served.write("ledger", "runs/tuned-in-vain.json", failed)
    jobs.document = tuning_job(trial(1, state="INFEASIBLE"), endTime="2026-03-01T13:00:00Z")
    with console_of(jobs.served.clients) as browser:
        text = browser.get("/runs/tuned-in-vain/study").text
    assert f"<strong>Failed:</strong> {escape(failed['failure']['message'])}" in text
    assert "<strong>Likely repair:</strong>" in text
    assert "No trial has a result." in text


def test_a_failed_trial_has_the_error_of_its_program_as_the_command_shows_it(jobs: Jobs) -> None:
    record = run_record("tuned", run_id="tuned-partly")
    record["job"] = {**record["job"], "name": JOB}
    (failed,) = [each for each in record["tuning"]["trials"] if "failure" in each]
    jobs.served.write("ledger", "runs/tuned-partly.json", record)
    service = "The replica workerpool0-0 exited with a non-zero status of 2."
    jobs.document = tuning_job(trial(int(failed["id"]), state="INFEASIBLE", infeasibleReason=service))
    with console_of(jobs.served.clients) as browser:
        text = browser.get("/runs/tuned-partly/study").text
    assert f'<span class="soft break">{escape(failed["failure"]["message"])}</span>' in text
    assert service not in text


def test_an_ended_study_is_final_and_an_unchanged_one_is_the_same_page(jobs: Jobs) -> None:
    assert "data-live" not in Shown(jobs, trial(1, 0.5), endTime="2026-03-01T13:00:00Z").text
    assert Shown(jobs, trial(1, 0.5)).text == Shown(jobs, trial(1, 0.5)).text


def test_the_csv_is_a_file_without_formulas(jobs: Jobs) -> None:
    jobs.document = tuning_job(trial(1, -0.5), trial(2, state="INFEASIBLE", infeasibleReason="=1+1"))
    with console_of(jobs.served.clients) as browser:
        answer = browser.get(f"{PAGE}.csv")
        missing = browser.get("/runs/plain/study.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert f"{RUN}-study.csv" in answer.headers["content-disposition"]
    rows = [*csv.reader(io.StringIO(answer.text))]
    assert [rows[1][5], rows[2][-1]] == ["-0.5", "'=1+1"]
    assert missing.status_code == 404


def test_the_document_is_the_one_that_the_command_prints(jobs: Jobs) -> None:
    jobs.document = tuning_job(trial(1, 0.5), trial(2, state="ACTIVE", endTime=None))
    with console_of(jobs.served.clients) as browser:
        found = browser.get(f"/api/v1{PAGE}").json()
    assert found == json.loads(jobs.served.trainmaster("study", RUN, "-o", "json").out)


@pytest.mark.slow
def test_a_thousand_trials_are_bounded_in_size_and_all_in_the_csv(jobs: Jobs) -> None:
    points = [
        {"stepCount": str(s), "metrics": [{"metricId": "accuracy", "value": s / 150}]} for s in range(150)
    ]
    trials = [trial(n, n / 1001, measurements=points if n > 790 else points[:1]) for n in range(1, 1001)]
    shown = Shown(jobs, *trials)
    assert len(shown.order) == 100
    curves = shown.data("curves")["series"]
    assert sum(len(each["points"]) for each in curves) <= 20_000
    assert all((each["points"][0][0], each["points"][-1][0]) == (0, 149) for each in curves)
    assert len(shown.data("parallel")["lines"]) == 1000
    assert "The charts leave out 800 curves." in shown.text
    assert len(shown.text) < 1_500_000
