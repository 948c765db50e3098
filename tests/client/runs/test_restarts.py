"""Restarts of a job by Vertex AI are counted on every screen, on real storage and logging servers."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.client.logged import Logged, point_to
from tests.client.served import served_context
from trainmaster.client.submission.terms import schema
from trainstack import logging

SCHEMA = Draft202012Validator(schema("explanation.v1"))
AGAIN = "Internal error occurred for the current attempt."


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    folder: Path = tmp_path_factory.mktemp("served")
    with served_context(folder) as served, logging.serve(folder / "logging") as url:
        point_to(served, url)
        yield Logged(served, url)


def test_status_and_why_show_how_often_a_running_job_was_restarted(logged: Logged) -> None:
    logged.record("again", job_id="1")
    logged.write("1", 70, "workerpool0-0", textPayload=f"I print: {AGAIN}")
    logged.write("1", 80, textPayload=AGAIN)
    for words in (("status", "again"), ("why", "again")):
        assert "; restarted once, at " in logged.served.trainmaster(*words).out
    logged.write("1", 90, textPayload=AGAIN)
    document = json.loads(logged.served.trainmaster("why", "again", "-o", "json").out)
    SCHEMA.validate(document)
    assert document["run"]["restarts"]["count"] == 2


def test_why_shows_the_restarts_after_the_end_too_and_those_of_a_stopped_stack(logged: Logged) -> None:
    logged.write("4", 70, textPayload=AGAIN)
    logged.write("4", 80, textPayload=AGAIN)
    logged.write("4", 80, textPayload="The local stack was stopped while this job ran.")
    for state in ("succeeded", "failed"):
        logged.record(state, state, job_id="4")
        assert "; restarted twice, last at " in logged.served.trainmaster("why", state).out


def test_a_job_without_a_restart_is_only_running(logged: Logged) -> None:
    logged.record("quiet", job_id="2")
    logged.write("2", 80, textPayload="Job is running.")
    logged.write("3", 80, textPayload=AGAIN)
    assert "restarted" not in logged.served.trainmaster("status", "quiet").out
