"""The command: what it prints, and its exit status."""

import json
from pathlib import Path

import pytest

from tests.command import Done, trainmaster
from trainmaster.inspect.finding import FindingSubject

ROOT = Path(__file__).resolve().parents[2]
TREES = Path("tests/inspect/trees")


def inspected(*arguments: str, cwd: Path = ROOT, **variables: str) -> Done:
    return trainmaster("inspect", *arguments, cwd=cwd, environment={"PATH": "/usr/bin:/bin"} | variables)


METRIC_TAG = (
    str(TREES / "metric_tag" / "faulty.py"),
    "--request",
    str(TREES / "metric_tag" / "request.yaml"),
)


def parse_levels(text: str) -> list[str]:
    return [line[:14].strip() for line in text.splitlines()[:-1] if line[:1].isalpha()]


def test_the_most_severe_finding_comes_first_each_with_place_cost_and_repair() -> None:
    done = inspected(*METRIC_TAG)
    assert done.status == 1
    lines = done.out.splitlines()
    assert parse_levels(done.out) == ["error", "not followed", "not followed", "ok"]
    assert lines[-1] == "1 error, 2 not followed, 1 ok"
    assert sum(line.split()[:1] == ["cost"] for line in lines) == 1
    assert sum(line.split()[:1] == ["repair"] for line in lines) == 3
    assert "tests/inspect/trees/metric_tag/faulty.py:13: The study" in lines[0]


def test_json_lines_say_the_same() -> None:
    text, lines = inspected(*METRIC_TAG).out, inspected(*METRIC_TAG, "--json").out
    findings = [json.loads(line) for line in lines.splitlines()]
    assert [finding["level"] for finding in findings] == parse_levels(text)
    assert findings[0].keys() == {"level", "subject", "found", "path", "line", "cost", "repair"}
    assert (findings[0]["path"], findings[0]["line"]) == ("tests/inspect/trees/metric_tag/faulty.py", 13)


def test_warnings_alone_exit_successfully(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import google.cloud.logging, os\ngoogle.cloud.logging.Client().setup_logging()\nos.environ['AIP_MODEL_DIR']\n"
    )
    done = inspected(str(tmp_path))
    assert (done.status, done.out.splitlines()[-1]) == (0, "1 warning, 1 not followed, 1 ok")


STARTS = [
    ["python", "-m", "pkg.go"],
    ["python", "pkg/go.py"],
    ["python3", "/app/pkg/go.py", "--config=a.py"],
    ["python", "-m", "trainer.launch", "--framework", "torch", "--", "python", "-m", "pkg.go"],
]


@pytest.mark.parametrize("words", STARTS)
def test_the_program_that_the_image_starts_is_the_one_examined(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "go.py").write_text("import os\nos.environ['AIP_MODEL_DIR']\n")
    (tmp_path / "train.py").write_text("print('of another program')\n")
    assert inspected(str(tmp_path)).status == 1
    (tmp_path / "Dockerfile").write_text(f"FROM python\nENTRYPOINT {json.dumps(words)}\n")
    assert inspected(str(tmp_path)).status == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("trainerr",),
            "'trainerr' does not exist; name a source tree or a Python file. Did you mean 'trainer'?",
        ),
        (("README.md",), "'README.md' is not a Python file"),
        (
            ("examples/scikit_learn/request.yaml",),
            "A request is named with --request examples/scikit_learn/request.yaml.",
        ),
        (("docs",), "'docs' contains no Python file"),
        (("trainer", "--module", "trainer.tsk"), "There is no module 'trainer.tsk'"),
        (("trainer", "--request", "README"), "--request 'README' cannot be read"),
        (("trainer", "functions"), "Got unexpected extra argument (functions)"),
        (("trainer", "--", "./nothing"), "'./nothing' cannot be started"),
        (("trainer", "--smoke_timeout_s=0"), "0 is not in the range x>=1"),
        (("trainer", "--strict"), "No such option '--strict'"),
    ],
)
def test_wrong_usage_is_refused_with_status_2(arguments: tuple[str, ...], words: str) -> None:
    done = inspected(*arguments)
    assert done.status == 2, done.out
    assert words in done.err
    assert done.out == ""


def test_with_no_tree_named_the_working_directorys_program_is_examined(tmp_path: Path) -> None:
    nothing = inspected(cwd=tmp_path)
    assert nothing.status == 2
    assert "'.' contains no Python file" in nothing.err
    (tmp_path / "train.py").write_text("print(1)\n")
    assert inspected(cwd=tmp_path).status == 1
    (tmp_path / "train.py").write_text("import os\nos.environ['AIP_MODEL_DIR']\n")
    assert inspected(cwd=tmp_path).status == 0


def test_the_source_is_read_and_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    (tmp_path / "train.py").write_text(f"import other\nopen({str(mark)!r}, 'w')\n")
    (tmp_path / "other.py").write_text(f"open({str(mark)!r}, 'w')\n")
    assert inspected(str(tmp_path)).status == 1
    assert not mark.exists()
    assert {path.name for path in tmp_path.iterdir()} == {"train.py", "other.py"}


def test_the_document_shows_what_the_command_prints() -> None:
    document = (ROOT / "docs" / "how-to" / "inspect.md").read_text()
    block = document.split("```\n$ trainmaster inspect ", 1)[1].split("\n```", 1)[0]
    arguments, _, printed = block.partition("\n")
    done = inspected(*arguments.split())
    assert done.out.rstrip("\n") == printed


def test_the_document_names_every_option_and_subject() -> None:
    document = (ROOT / "docs" / "how-to" / "inspect.md").read_text()
    shown = inspected("--help").out
    options = {word.strip("[],") for word in shown.split() if word.strip("[],").startswith("--")} - {"--help"}
    assert {option for option in options if option not in document and option != "--"} == set()
    assert {subject for subject in FindingSubject if f"| {subject} |" not in document} == set()
