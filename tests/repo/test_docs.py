"""Everything that the documents name exists, and the requests and rules that they show are valid."""

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.command import trainmaster
from trainmaster.deploy.names import regions
from trainmaster.orchestrator.core.errors import TrainmasterError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "bench" / "README.md", ROOT / "CONTRIBUTING.md"])
SCHEMA_BY_KEY = {"when": "retraining_rule.v1", "cluster": "training_request.v1"}
README_LINES_MAX, PAGE_WORDS_MAX = 180, 3000
CITED = re.compile(r"`(?P<path>tests/[\w/]+\.py)?(?:::(?P<name>test_\w+))?`")


def cited(page: Path) -> Iterator[tuple[Path, str]]:
    """File and test, perhaps empty, of every citation; one without a file means the file before it."""
    path: Path | None = None
    for match in CITED.finditer(page.read_text()):
        path = ROOT / match["path"] if match["path"] else path
        if path is not None and (match["path"] or match["name"]):
            yield path, match["name"] or ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_test_that_a_page_cites_exists(page: Path) -> None:
    missing = [
        f"{path.name}::{name}"
        for path, name in cited(page)
        if not path.is_file() or (name and f"def {name}(" not in path.read_text())
    ]
    assert missing == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_no_page_is_too_long_to_look_something_up(page: Path) -> None:
    assert len(page.read_text().split()) <= PAGE_WORDS_MAX, "split it by subject"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= README_LINES_MAX


def test_the_runbook_says_what_every_error_means_and_whether_the_event_is_redelivered() -> None:
    table = (
        (ROOT / "docs" / "how-to" / "runbook.md")
        .read_text()
        .partition("\n## Errors\n")[2]
        .partition("\n## ")[0]
    )
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| `")]
    told = {name: fate.strip() for names, fate, _ in rows for name in re.findall(r"`(\w+)`", names)}
    named = {error.__name__: error for error in TrainmasterError.__subclasses__()}
    assert told == {name: "again" if error.retryable else "done" for name, error in named.items()}


def test_every_region_that_a_command_of_ours_shows_works_in_every_project() -> None:
    how_to = [path.read_text() for path in (ROOT / "docs" / "how-to").glob("*.md")]
    files = [ROOT / "README.md", ROOT / "Makefile", ROOT / "trainmaster" / "cli" / "deploy.py"]
    text = "\n".join([*how_to, *(path.read_text() for path in files)])
    shown = set(re.findall(r"(?:REGION=|--region '?|--location |for example )([a-z]+-[a-z]+\d+)", text))
    assert shown
    assert shown <= regions("training") & regions("building")


def test_every_extra_that_a_page_installs_exists() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = "\n".join(page.read_text() for page in [*PAGES, ROOT / "README.md"])
    named = {
        name for names in re.findall(r"pip install '[^'\[]*\[([\w,-]+)\]", text) for name in names.split(",")
    }
    assert named
    assert named <= set(extras)


def test_every_word_of_the_glossary_is_used_in_code() -> None:
    ours = (ROOT / "docs/reference/glossary.md").read_text().partition("\n## Google's names\n")[0]
    rows = re.findall(r"^\| ([a-z][^|]*) \|", ours, re.MULTILINE)
    words = [word for row in rows if row != "word" for word in row.split(", ")]
    code = "\n".join(path.read_text() for path in (ROOT / "trainmaster").rglob("*.py"))
    unused = [word for word in words if not re.search(re.sub(r"[ -]", "[ _-]", word), code, re.IGNORECASE)]
    assert len(words) > 20
    assert unused == []


def shown() -> Iterator[tuple[str, dict[str, Any]]]:  # Any: a YAML document
    """Page and content of each whole request or rule in a page; parts of one have no `model_name`."""
    for page in [ROOT / "README.md", *PAGES]:
        for block in re.findall(r"^```yaml\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE):
            content = yaml.safe_load(block)
            if "when" in content or {"model_name", "cluster"} <= content.keys():
                yield page.name, content


def test_the_requests_and_rules_that_pages_show_fit_their_schemas() -> None:
    faults = []
    for page, content in shown():
        schema = next(name for key, name in SCHEMA_BY_KEY.items() if key in content)
        validator = Draft202012Validator(json.loads((ROOT / f"schemas/{schema}.schema.json").read_text()))
        faults += [f"{page}: {error.message}" for error in validator.iter_errors(content)]
    assert faults == []
    assert len(list(shown())) > 5


def test_trainmaster_check_finds_no_fault_in_the_requests_and_rules_that_pages_show(tmp_path: Path) -> None:
    """Each beside the script that it names, with the shipped policy and the two regions of the pages."""
    policy = yaml.safe_load((ROOT / "functions/policy.yaml").read_text())
    (tmp_path / "policy.yaml").write_text(
        yaml.safe_dump({**policy, "regions": ["us-central1", "europe-west4"]})
    )
    (tmp_path / "jobs").mkdir()
    for script in ("train.py", "program.py", "jobs/train.py"):
        (tmp_path / script).touch()
    files: list[str] = []
    for page, content in shown():
        files.append(f"{len(files)}-{page}.json")
        (tmp_path / files[-1]).write_text(json.dumps(content))
    words = ("check", "--policy", "policy.yaml", "--context", "my-project/us-central1", *files)
    done = trainmaster(*words, cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert done.status == 0, done.out
    assert "rules.md.json: rule, no faults" in done.out
