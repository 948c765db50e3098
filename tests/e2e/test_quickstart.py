"""The quickstart: each of its commands is run, and must print what the page shows. `make demo` is run by test_readme."""

from collections.abc import Iterator

import pytest
import yaml

from .project import ROOT
from .reader import DEADLINE_S, Reader, sections, with_commands

PAGE = ROOT / "docs/tutorials/quickstart.md"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(PAGE, tmp_path_factory.mktemp("quickstart"))
    try:
        yield reader
    finally:
        reader.stop()


def test_every_command_of_the_quickstart_is_run() -> None:
    source = (ROOT / "tests/e2e/test_quickstart.py").read_text()
    assert not [title for title in with_commands(PAGE) if f'"{title}"' not in source]


def test_the_request_that_the_quickstart_quotes_is_what_init_writes() -> None:
    written = yaml.safe_load((ROOT / "examples/starter/request.yaml").read_text())
    (quoted,) = (text for kind, text in sections(PAGE)["Submit a script"] if kind == "yaml")
    assert yaml.safe_load(quoted).items() <= written.items()


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
def test_the_quickstart_ends_with_a_model_and_a_refused_request(reader: Reader) -> None:
    reader.follow("Start the stack")
    reader.follow("Submit a script")
    assert "succeeded" in reader.follow("See what happened")
    assert (reader.folder / "model" / "model.json").is_file()
    reader.follow("Make a mistake", fails="submit typo.yaml")
    reader.follow("Stop the stack")
    assert not (reader.folder / ".trainmaster" / "stack.env").exists()
