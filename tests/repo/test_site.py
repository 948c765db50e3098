"""The site: built by `make site` without a warning, whole, and its search answers what new users ask."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.site.pages import copy_pages, links_of
from trainmaster.version import VERSION

from .files import ROOT

BUILDER = ROOT / "build" / "publish" / "bin" / "python"
OFFLINE = ("No matching distribution", "NewConnectionError", "ConnectTimeout")
QUESTIONS = {
    "first steps": "tutorials/quickstart/",
    "install packages requirements.txt": "how-to/your-own-project/",
    "pytorch distributed": "how-to/frameworks/",
    "hyperparameter tuning": "tutorials/your-own-model/",
    "why did a run fail": "how-to/runbook/",
    "continue checkpoints": "how-to/continue-a-run/",
    "spot fallback": "reference/admission/",
    "wait for quota": "reference/admission/",
    "cost per day limit": "reference/prices/",
    "schedule every week": "reference/rules-times/",
    "new data rule": "reference/rules-data/",
    "rollback champion": "reference/champions/",
    "serve endpoint": "how-to/use-a-model/",
    "slack": "how-to/notify/",
    "roles deployer": "reference/deployment/",
    "remove deployment": "how-to/deploy/",
    "dead letter replay": "how-to/runbook/",
    "team caps": "how-to/share-a-deployment/",
    "macos": "how-to/run-in-a-container/",
    "secret manager": "explanation/security/",
    "train my script": "how-to/your-own-project/",
    "resume checkpoint": "how-to/continue-a-run/",
    "github actions": "how-to/run-from-ci/",
    "out of memory": "reference/late-and-lost-jobs/",
    "delete old models": "how-to/keep-and-clean/",
}
"""What a new user types, and the page that answers it."""


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of this version, built by the command that the documentation names."""
    # The lock is installed: these tests run.
    command = ["make", "--assume-old=.venv/.installed-from-lock", "site"]
    done = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True, timeout=280)
    said = done.stdout + done.stderr
    if done.returncode and any(word in said for word in OFFLINE):
        pytest.skip("no package index answers, from which MkDocs could be installed")
    assert done.returncode == 0, said
    assert "WARNING  -" not in said
    return ROOT / "build" / "site" / VERSION


@pytest.mark.slow(seconds=25)
def test_every_page_is_on_the_site_as_html_and_as_markdown(site: Path) -> None:
    missing = []
    for page in (ROOT / "docs").rglob("*.md"):
        markdown = site / page.relative_to(ROOT / "docs")
        html = markdown.parent if page.name == "README.md" else markdown.with_suffix("")
        missing += [path for path in (markdown, html / "index.html") if not path.is_file()]
    assert missing == []


@pytest.mark.slow(seconds=1)
def test_no_page_shows_markdown_that_mkdocs_did_not_understand(site: Path) -> None:
    pages = {path.parent.name: path.read_text() for path in site.rglob("index.html")}
    left = re.compile(r"<p>(?:(?!</p>).)*?(?:\n(?:- |\| |\d+\. )|```)", re.DOTALL)
    assert {name: found[0][-200:] for name, text in pages.items() if (found := left.search(text))} == {}


@pytest.mark.slow(seconds=1)
def test_llms_txt_lists_the_pages_of_the_index_in_its_order(site: Path) -> None:
    text = (site / "llms.txt").read_text()
    assert text.startswith("# Trainmaster\n\n> ")
    listed = [re.sub(r"^repository/", "../", path) for path in re.findall(r"\]\(([^)]+)\): ", text)]
    index = (ROOT / "docs" / "README.md").read_text().partition("\n## ")[2]
    linked = [path.removeprefix("docs/") for path in links_of(ROOT, "docs/README.md", index)]
    assert listed == [path if (ROOT / "docs" / path).exists() else f"../{path}" for path in linked]
    assert [path for path in re.findall(r"\]\(([^)]+)\): ", text) if not (site / path).is_file()] == []


@pytest.mark.slow(seconds=1)
def test_the_site_lists_its_versions_and_leads_to_the_newest(site: Path) -> None:
    listed = [each["version"] for each in json.loads((site.parent / "versions.json").read_text())]
    assert VERSION in listed
    for page, way in (("index.html", ""), ("latest/index.html", "../")):
        assert f'href="{way}{listed[0]}/"' in (site.parent / page).read_text()


@pytest.mark.slow(seconds=2)
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not on PATH")
def test_the_search_answers_the_questions_of_new_users_with_the_right_page_among_the_first_three(
    site: Path,
) -> None:
    command = ["node", str(ROOT / "tests" / "repo" / "search.js"), str(site), *QUESTIONS]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    results = dict(zip(QUESTIONS, map(json.loads, done.stdout.splitlines()), strict=True))
    wrong = {asked: results[asked][:3] for asked, page in QUESTIONS.items() if page not in results[asked][:3]}
    assert wrong == {}


@pytest.mark.slow(seconds=2)
def test_a_link_to_a_heading_that_does_not_exist_ends_the_build(site: Path, tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "README.md").write_text("# One\n\n[Two](#two)\n")
    (tmp_path / "own.json").write_text(
        json.dumps({"INHERIT": str(ROOT / "tools/site/mkdocs.yml"), "docs_dir": "pages"})
    )
    command = [str(BUILDER), "-m", "mkdocs", "build", "--strict", "--config-file", str(tmp_path / "own.json")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode != 0
    assert "no such anchor" in done.stdout + done.stderr


def test_what_a_page_links_to_outside_of_docs_is_copied_and_linked(tmp_path: Path) -> None:
    root, copies = tmp_path / "root", tmp_path / "copies"
    for name, text in {
        "docs/how-to/sweeps.md": "[a](../../more/a.yaml) [folder](../../more) [b](../../B.md#b)\n\n**More.**\n- an item\n",
        "more/a.yaml": "a: 1\n",
        "B.md": "# B\n[page](docs/how-to/sweeps.md)\n```\n[c](none.md)\n```\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    copy_pages(root, copies)
    assert (copies / "how-to/sweeps.md").read_text() == (
        "[a](../repository/more/a.yaml) [folder](../repository/more/README.md) [b](../repository/B.md#b)\n\n**More.**\n\n- an item\n"
    )
    assert "- [a.yaml](a.yaml)" in (copies / "repository/more/README.md").read_text()
    assert (copies / "repository/more/a.yaml").read_text() == "a: 1\n"
    assert "[page](../how-to/sweeps.md)" in (copies / "repository/B.md").read_text()
    assert not (copies / "repository/none.md").exists()
