"""The verbs that people call most load only what they need, so that they start at once."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import ROOT, Served, run_record, served_context

SLOW = (
    "yaml",
    "jsonschema",
    "rich",
    "google.cloud.aiplatform",
    "google.cloud.logging",
    "google.pubsub",
    "starlette",
)
RUN = "cassava-20260301t120000-eb46bb303f"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("served")) as served:
        served.write("ledger", f"runs/{RUN}.json", run_record("succeeded"))
        write_row(served, row(1))
        yield served


@pytest.mark.parametrize("words", [["ls"], ["status", RUN]], ids=["ls", "status"])
def test_a_frequent_verb_loads_no_library_that_it_does_not_use(served: Served, words: list[str]) -> None:
    code = (
        "import sys; from trainmaster.cli.command import main; assert main() == 0; "
        f"print([name for name in sys.modules if name.startswith({SLOW!r})])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words, "--context", f"local:{served.folder}/.trainmaster"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert done.stdout.endswith("\n[]\n")
