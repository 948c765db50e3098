"""The first day before anything runs: what it costs, asks and replaces; tests/e2e/test_first_day.py takes one."""

import json
import os
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.deploy.cloud import PROGRAMS, PROJECT, REGION, ROOT, Cloud
from trainmaster.client.context import context_in_cloud
from trainmaster.client.request_files import SHIPPED_POLICY, read_policy, rules_for, shipped_prices
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.prepare import prepare
from trainmaster.deploy.first_day.__main__ import COST_MAX_USD
from trainmaster.deploy.first_day.answers import QUESTIONS, answers_of
from trainmaster.deploy.first_day.day import Day
from trainmaster.deploy.first_day.stand_ins import StandIns
from trainmaster.deploy.first_day.steps import NAMES, REQUESTS
from trainmaster.orchestrator.core.admission.cost import estimate_of
from trainmaster.orchestrator.core.requests.candidates import parse_candidates
from trainmaster.resources import DEPLOY, parse_yaml

REGIONS = [str(each) for each in parse_yaml((DEPLOY / "regions.yaml").read_text())["training"]]


def cost_of(region: str) -> Decimal:
    """What the requests cost at most in the region; where a machine has no price, that of the others."""
    context, prices = context_in_cloud("my-project", region), shipped_prices()
    rules = rules_for(context, read_policy(SHIPPED_POLICY, context))
    total = Decimal(0)
    for name in NAMES:
        file = REQUESTS / f"first-day-{name}.yaml"
        found = prepare(str(file), file.read_bytes(), Edits(), context=context, rules=rules, prices=prices)
        assert found.faults == ()
        assert found.request is not None
        total += estimate_of(parse_candidates(found.request.document), prices).at_most or Decimal(0)
    return total


@pytest.mark.slow(seconds=3)
def test_the_runs_are_allowed_and_cost_less_than_is_said_in_every_region() -> None:
    costs = [cost_of(region) for region in REGIONS]
    assert len(costs) > 20
    assert Decimal("0.2") < max(costs) < COST_MAX_USD


def test_each_question_settles_a_text_of_the_page_and_is_open_without_documents() -> None:
    page = (ROOT / "docs" / "reference" / "fidelity.md").read_text()
    assert [each.name for each in QUESTIONS if each.settles not in page] == []
    assert set(answers_of({}).values()) == {None}


DETAILS = (
    ("tm-trainer@secret-lab.iam.gserviceaccount.com", "tm-trainer@my-project.iam.gserviceaccount.com"),
    ("service-998877665544@gcp-sa-logging.iam.gserviceaccount.com", "service-123456789012@gcp-sa-logging.iam.gserviceaccount.com"),
    ("x@other.iam.gserviceaccount.com", "account-1@another-project.iam.gserviceaccount.com"),
    ("by user:ada.l@lab.example.org.", "by user:person-1@example.com."),
    ("gs://secret-lab-models/m/", "gs://my-project-models/m/"),
    ("projects/998877665544/locations/r/customJobs/1", "projects/123456789012/locations/r/customJobs/1"),
    ("projects/strangers-1/secrets/s", "projects/another-project-1/secrets/s"),
    ("tenant hb7c0f1a2b3c4d5e6-tp", "tenant tenant-1-tp"),
    ('"uniqueId": "104857600000000000001"', '"uniqueId": "100000000000000000001"'),
    ("from 34.72.10.4:2222 and 2600:1900:4000:b1::7", "from 2001:db8::1:2222 and 2001:db8::2"),
    ("Bearer ya29.a0AfB_byC-12345678.x", "Bearer TOKEN-1"),
    ("cd /home/ada/x", "cd /home/me/x"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), DETAILS, ids=[text[:20] for text, _ in DETAILS])
def test_a_personal_detail_gets_a_stand_in(text: str, expected: str) -> None:
    known = {"secret-lab": "my-project", "998877665544": "123456789012", "/home/ada": "/home/me"}
    assert StandIns(known).replaced({"a": [text], text: 1}) == {"a": [expected], expected: 1}


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1:2222",
        "2026-11-26T01:27:34.306519Z",
        "us-docker.pkg.dev/my-project/t/first-day@sha256:0a0a",
        "customJobs/8115620019200902450",
        "std::vector",
        "version 3.11",
    ],
)
def test_what_is_no_detail_stays(text: str) -> None:
    assert StandIns({"b1": "x"}).replaced(text) == text


def test_one_detail_has_one_stand_in_and_secrets_are_known_by_their_key() -> None:
    stand_ins = StandIns({})
    first = stand_ins.replaced(
        {"to": "ada@lab.example.org", "accessToken": "abc", "unknown": {"n": [1, None]}}
    )
    again = stand_ins.replaced("cc bob@lab.example.org, ada@lab.example.org")
    assert first == {"to": "person-1@example.com", "accessToken": "TOKEN-1", "unknown": {"n": [1, None]}}
    assert again == "cc person-2@example.com, person-1@example.com"


def test_a_project_whose_jobs_were_all_refused_is_still_replaced(tmp_path: Path) -> None:
    day = Day(context_in_cloud("secret-lab", REGION))
    day.seen["doctor"] = {
        "lines": ["ok project secret-lab: its number is 998877665544", "gcf-998877665544-r"]
    }
    day.save(tmp_path)
    written = "".join(each.read_text() for each in tmp_path.iterdir())
    assert "gcf-123456789012-r" in written
    assert "secret-lab" not in written
    assert "998877665544" not in written


def test_a_long_text_is_replaced_in_linear_time() -> None:
    for text in ("a" * 100_000, "1." * 50_000, "a:" * 50_000, "a." * 50_000, "eyJ" * 30_000):
        StandIns({"secret-lab": "my-project"}).replaced(text)


def first_day(cloud: Cloud, *words: str) -> "subprocess.CompletedProcess[str]":
    """As a user without a terminal runs it in the fake project's folder."""
    cloud.up("--check")  # writes down what the project has
    (cloud.folder / "asked").write_text("")
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FAKE_CLOUD": str(cloud.folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "trainmaster.deploy.first_day", *words]
    return subprocess.run(
        command, cwd=cloud.folder, env=environment, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.slow(seconds=4)
def test_it_says_what_it_costs_and_begins_nothing_without_agreement(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path)
    done = first_day(cloud, "--project", PROJECT, "--region", REGION)
    assert done.returncode == 2
    assert "less than 1 USD" in done.stdout
    assert "18.50 USD a month" in done.stdout
    assert "Nothing was begun. To agree: YES=1, or --yes" in done.stderr
    assert (tmp_path / "asked").read_text() == ""


@pytest.mark.slow(seconds=5)
def test_a_refused_deployment_ends_it_with_what_was_seen(tmp_path: Path) -> None:
    cloud = Cloud(tmp_path)
    cloud.content["projects"][PROJECT]["billing"] = False
    done = first_day(cloud, "--project", PROJECT, "--region", REGION, "--yes", "--fixtures", "seen")
    assert done.returncode == 1
    assert "FAILED   check: StepFailed: status 2" in done.stdout
    asked = (tmp_path / "asked").read_text()
    assert "builds submit" not in asked
    steps = json.loads((tmp_path / "seen" / "first_day.json").read_text())["steps"]
    assert [each["step"] for each in steps] == ["gcloud", "terraform", "check"]
    kept = (tmp_path / "seen" / "check.json").read_text()
    assert "billing" in kept
    assert PROJECT not in kept


@pytest.mark.slow(seconds=2)
def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text("{}")
    done = first_day(Cloud(tmp_path), "--project", PROJECT, "--yes", "--fixtures", ".")
    assert done.returncode == 2
    assert "has other files. Name an empty folder: FIXTURES=DIR" in done.stderr
    assert (tmp_path / "mine.json").read_text() == "{}"


@pytest.mark.parametrize(
    ("given", "called"),
    [
        (["STATE=.trainmaster"], "first_day --state '.trainmaster' --fixtures 'build/first-day'"),
        (["PROJECT=p"], "first_day --project 'p' --region 'us-central1' --fixtures 'build/first-day'"),
        (
            ["PROJECT=p", "REGION=r", "FIXTURES=f", "YES=1"],
            "first_day --project 'p' --region 'r' --fixtures 'f' --yes",
        ),
        ([], "Set PROJECT: make first-day PROJECT=my-project"),
    ],
)
def test_make_first_day_calls_it_with_what_was_given(given: list[str], called: str) -> None:
    said = subprocess.run(
        ["make", "-n", "first-day", *given], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert called in said.stdout + said.stderr
