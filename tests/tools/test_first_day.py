"""The first day before anything runs: what it costs, asks and replaces; tests/e2e/test_first_day.py takes one."""

import os
import signal
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.deploy.cloud import PROGRAMS, PROJECT, REGION, ROOT, Cloud
from tools.first_day.__main__ import COST_MAX_USD
from tools.first_day.day import FirstDay, run_command
from tools.first_day.stand_ins import StandIns
from tools.first_day.steps import REQUESTS, RUNS
from trainmaster.client.context import context_in_cloud
from trainmaster.client.submission.examination import examination_of
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import terms_with_policy
from trainmaster.orchestrator.core.admission.candidates import parse_candidates
from trainmaster.orchestrator.core.admission.cost import estimate_of
from trainmaster.resources import DEPLOY, parse_yaml

REGIONS = [str(each) for each in parse_yaml((DEPLOY / "regions.yaml").read_text())["training"]]


def cost_of(region: str) -> Decimal:
    """What the requests cost at most in the region; where a machine has no price, that of the others."""
    terms = terms_with_policy(context_in_cloud("my-project", region))
    total = Decimal(0)
    for name in RUNS:
        file = REQUESTS / f"first-day-{name}.yaml"
        found = examination_of(RequestSource(file=str(file), content=file.read_bytes()), terms)
        assert found.faults == ()
        assert found.request is not None
        total += estimate_of(parse_candidates(found.request.document), terms.prices).at_most or Decimal(0)
    return total


@pytest.mark.slow(seconds=3)
def test_the_runs_are_allowed_and_cost_less_than_is_said_in_every_region() -> None:
    costs = [cost_of(region) for region in REGIONS]
    assert len(costs) > 20
    assert Decimal("0.2") < max(costs) < COST_MAX_USD


DETAILS = (
    ("tm-trainer@secret-lab.iam.gserviceaccount.com", "tm-trainer@my-project.iam.gserviceaccount.com"),
    ("service-998877665544@gcp-sa-logging.iam.gserviceaccount.com", "service-123456789012@gcp-sa-logging.iam.gserviceaccount.com"),
    ("x@other.iam.gserviceaccount.com", "person-1@example.com"),
    ("by user:ada.l@lab.example.org.", "by user:person-1@example.com."),
    ("gs://secret-lab-models/m/", "gs://my-project-models/m/"),
    ("projects/998877665544/locations/r/customJobs/1", "projects/123456789012/locations/r/customJobs/1"),
    ("projects/strangers-1/secrets/s", "projects/another-project-1/secrets/s"),
    ("tenant hb7c0f1a2b3c4d5e6-tp", "tenant tenant-1-tp"),
    ('"uniqueId": "104857600000000000001"', '"uniqueId": "100000000000000000001"'),
    ("from 34.72.10.4:2222 and 2600:1900:4000:b1::7", "from 192.0.2.1:2222 and 2001:db8::1"),
    ("Bearer ya29.a0AfB_byC-12345678.x", "Bearer TOKEN-1"),
    ("cd /home/ada/x", "cd /home/me/x"),
    ("127.0.0.1:2222 at 2026-11-26T01:27:34.306519Z", "127.0.0.1:2222 at 2026-11-26T01:27:34.306519Z"),
    ("first-day@sha256:0a0a and std::vector", "first-day@sha256:0a0a and std::vector"),
    ("customJobs/8115620019200902450 of 3.11", "customJobs/8115620019200902450 of 3.11"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), DETAILS, ids=[text[:20] for text, _ in DETAILS])
def test_a_personal_detail_gets_a_stand_in_and_nothing_else(text: str, expected: str) -> None:
    known = {"secret-lab": "my-project", "998877665544": "123456789012", "/home/ada": "/home/me", "b1": "x"}
    assert StandIns(known).replaced({"a": [text], text: 1}) == {"a": [expected], expected: 1}


def test_one_detail_has_one_stand_in_and_an_unknown_field_stays() -> None:
    stand_ins = StandIns({})
    first = stand_ins.replaced({"to": "ada@lab.example.org", "unknown": {"n": [1, None]}})
    again = stand_ins.replaced("cc bob@lab.example.org, ada@lab.example.org")
    assert first == {"to": "person-1@example.com", "unknown": {"n": [1, None]}}
    assert again == "cc person-2@example.com, person-1@example.com"


def test_a_long_text_is_replaced_in_linear_time() -> None:
    for text in ("a" * 100_000, "1." * 50_000, "a:" * 50_000, "a." * 50_000, "eyJ" * 30_000):
        StandIns({"secret-lab": "my-project"}).replaced(text)


def first_day(cloud: Cloud, *words: str) -> "subprocess.CompletedProcess[str]":
    """As a user without a terminal runs it in the fake project's folder."""
    cloud.up("--check")  # writes down what the project has
    (cloud.folder / "asked").write_text("")
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "FAKE_CLOUD": str(cloud.folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tools.first_day", *words]
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


def test_a_step_that_fails_does_not_end_the_day_and_an_interrupt_does(tmp_path: Path) -> None:
    day = FirstDay(context_in_cloud("my-project", REGION), tmp_path)
    assert day.take("good", lambda: run_command([sys.executable, "-c", ""]))
    assert not day.take("bad", lambda: run_command([sys.executable, "-c", "exit(3)"]))
    with pytest.raises(KeyboardInterrupt):
        day.take("long", lambda: signal.raise_signal(signal.SIGINT))
    assert day.results == {"good": "ok", "bad": "FAILED StepFailed: status 3", "long": "stopped"}


def test_make_first_day_gives_what_was_set() -> None:
    given = ("make", "-n", "first-day", "PROJECT=p", "REGION=r", "FIXTURES=f", "YES=1")
    shown = subprocess.check_output(given, cwd=ROOT, text=True)
    assert "first_day --project 'p' --region 'r' --fixtures 'f' --yes" in shown
