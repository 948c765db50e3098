"""The page of scores is what the committed results of the clients' suites give."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.suites.outcomes import read_outcomes
from tests.suites.page import PAGE, SCORES, page_text, read_scores
from tests.suites.running import PLUGINS, environment_of, pytest_words
from tests.suites.suite import SUITES, Adaptation, Suite

SUITE = """
import pytest


@pytest.fixture
def topic():
    raise RuntimeError("400 POST http://127.0.0.1:4711/v1/t: schemas are not imitated by the local stack; leave them out")


def test_that_is_refused(topic): ...
def test_that_passes(): ...
def test_with_a_wrong_answer(): assert {"location": "mars"} == {}
def test_without_what_it_needs(): pytest.skip("needs a key")
def test_left_out(): raise AssertionError
"""


def test_the_page_is_written_from_the_committed_scores() -> None:
    assert PAGE.read_text() == page_text(read_scores(SCORES)), "write it again: python -m tests.suites --page"


def test_failures_are_grouped_by_the_stacks_sentence_or_the_last_exception(tmp_path: Path) -> None:
    (tmp_path / "test_client.py").write_text(SUITE)
    suite = Suite(
        name="client",
        repository="owner/client",
        commit="0" * 40,
        version="1",
        tests="test_client.py",
        requires="",
        adaptations=(Adaptation(why="an example", left_out=("test_client.py::test_left_out",)),),
    )
    stack = {"GOOGLE_CLOUD_PROJECT": "project-1", "TRAINMASTER_TRAINER_ACCOUNT": "a@example.com"}
    words = [word for word in pytest_words(suite) if "asyncio" not in word and word != "-o"]
    command = [sys.executable, "-m", "pytest", "--junitxml=report.xml", *words]
    subprocess.run(command, cwd=tmp_path, env=environment_of(suite, stack), check=False)
    outcomes = read_outcomes(tmp_path / "report.xml")
    assert {test.partition("::")[2]: result for test, *result in outcomes} == {
        "test_that_is_refused": [
            "refused",
            "RuntimeError: … POST … schemas are not imitated by the local stack; leave them out",
        ],
        "test_that_passes": ["passed", ""],
        "test_with_a_wrong_answer": ["wrong", "AssertionError: assert {'location': 'mars'} == {}"],
        "test_without_what_it_needs": ["skipped", ""],
    }


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_every_adaptation_says_why_and_has_its_plugin(suite: Suite) -> None:
    assert len(suite.commit) == 40
    for adaptation in suite.adaptations:
        assert adaptation.why
        assert not adaptation.plugin or (PLUGINS / f"{adaptation.plugin}.py").is_file()
        assert json.dumps(dict(adaptation.variables))
