"""What people call most loads only what it needs, so that it starts at once: frequent verbs, help, and completions."""

import sys

import pytest

from tests.client.runs.rows import row, write_row
from tests.client.served import ROOT, Served, run_record, served_once
from tests.processes import run_to_end

SLOW = ("yaml", "jsonschema", "rich", "jinja2", "tensorflow", "starlette")
CLIENTS = ("google.cloud.aiplatform", "google.cloud.logging", "google.pubsub")
ANY_CLIENT = ("google.api_core", "google.auth", "google.cloud.storage", "grpc", "requests")
RUN = "cassava-20260301t120000-eb46bb303f"


def printed_without(slow: tuple[str, ...], *words: str, **variables: str) -> str:
    """What the command prints in a separate process, which may load none of the libraries."""
    code = (
        "import sys\nfrom trainmaster.cli.command import main\n"
        "try: assert main() == 0\nexcept SystemExit: pass\n"
        f"print([name for name in sys.modules if name.startswith({slow!r})])"
    )
    command = [sys.executable, "-c", code, *words]
    done = run_to_end(command, cwd=ROOT, env=variables or None, timeout=120, check=True)
    assert done.stdout.endswith("\n[]\n")
    return done.stdout


@served_once
def served(served: Served) -> None:
    served.write("ledger", f"runs/{RUN}.json", run_record("succeeded"))
    write_row(served, row(1))


@pytest.mark.parametrize("words", [["ls"], ["status", RUN]], ids=["ls", "status"])
def test_a_frequent_verb_loads_no_library_that_it_does_not_use(served: Served, words: list[str]) -> None:
    printed_without(SLOW + CLIENTS, *words, "--context", f"local:{served.folder}/.trainmaster")


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_load_no_slow_library(flag: str) -> None:
    printed_without(SLOW + ANY_CLIENT, flag)


@pytest.mark.parametrize("words", ["trainmaster ", "trainmaster rules ", "trainmaster cancel --"])
def test_completing_loads_no_slow_library(words: str) -> None:
    places = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    printed = printed_without(SLOW + ANY_CLIENT, _TRAINMASTER_COMPLETE="bash_complete", **places)
    assert printed.count("plain,") > 2
