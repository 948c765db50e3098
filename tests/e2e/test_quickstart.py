"""The quickstart: each of its commands is run, and must print what the page shows. `make demo` is run by test_readme."""

import json
from collections.abc import Iterator

import pytest
import yaml

from .project import ROOT, stop
from .reader import DEADLINE_S, Reader, assert_shown, sections

PAGE = ROOT / "docs/tutorials/quickstart.md"
FOLLOWED = ["Start the stack", "Submit a request", "Make a mistake", "Stop the stack"]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(PAGE, tmp_path_factory.mktemp("quickstart"))
    process = reader.start()
    try:
        yield reader
    finally:
        stop(process)


def test_every_command_of_the_quickstart_is_run() -> None:
    commands = {
        title: text for title, blocks in sections(PAGE).items() for kind, text in blocks if kind == "sh"
    }
    assert list(commands) == ["Run the demo", *FOLLOWED]
    assert commands["Run the demo"] == "make demo\n"


def test_the_request_that_the_quickstart_quotes_is_the_example() -> None:
    example = yaml.safe_load((ROOT / "examples/scikit_learn/request.yaml").read_text())
    (quoted,) = (text for kind, text in sections(PAGE)["Submit a request"] if kind == "yaml")
    assert yaml.safe_load(quoted).items() <= example.items()


@pytest.mark.slow
@pytest.mark.timeout(2 * DEADLINE_S)
def test_the_quickstart_ends_with_a_model_and_a_refused_request(reader: Reader) -> None:
    *printed, files = reader.follow("Submit a request")
    assert_shown(reader.sections["Submit a request"], printed)
    assert "metrics.json" in files
    printed = reader.follow("Make a mistake")
    assert_shown(reader.sections["Make a mistake"], printed)
    problems = json.loads(printed[-1])["problems"]
    assert [problem.split(":")[0] for problem in problems] == ["$.champion.goal", "$.cluster.chief.machine"]
    reader.follow("Stop the stack")
    assert not (reader.folder / ".trainmaster" / "stack.env").exists()
