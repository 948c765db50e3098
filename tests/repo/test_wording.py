"""The words of the project are plain English: the checker finds what is not, and the whole repository passes it."""

import subprocess
import sys

import pytest

from tests.repo.files import ROOT
from tests.repo.wording.names import REPLACED
from tests.repo.wording.phrases import findings
from tests.repo.wording.prose import passages
from tests.repo.wording.report import LIMIT, read, report_on

FILES = {
    "a.py": 'X = 1  # a port\n\n\ndef f():\n    """A port\n    that whoever asks may use."""\n',
    "b.py": 'raise ValueError(\n    f"found {value!r}: "\n    "a whole number is wanted here"\n)\n',
    "c.py": "x = 1\n# The reconciler looks at what\n# nobody has reported yet.\ny = 2\n",
    "d.md": "# A page\n\nThe run goes\non when the lease is over.\n",
    "e.yaml": "a: 1\ndescription: the place of a run that nobody has admitted\n",
    "f.tf": 'resource "a" "b" {\n  # Terraform is told of it by the topology.\n}\n',
    "g.json": '{\n  "description": "So many runs may wait for a slot"\n}\n',
    "Makefile": "all:\n\t@true  # mended by make format\n",
    "Dockerfile": "FROM scratch\n# For want of a shell, nothing runs here.\n",
}
"""Each has one phrase, in the third or fourth line of some, over two lines of others."""


@pytest.mark.parametrize("path", FILES)
def test_a_phrase_is_found_in_the_prose_of_each_kind_of_file_at_its_line(path: str) -> None:
    expected = {
        "a.py": (6, "whoever"),
        "b.py": (2, "is wanted"),
        "c.py": (3, "nobody"),
        "d.md": (3, "goes on"),
        "e.yaml": (2, "nobody"),
        "f.tf": (2, "told"),
        "g.json": (2, "So many"),
        "Makefile": (2, "mended"),
        "Dockerfile": (2, "For want of"),
    }
    found = [
        (passage.line_at(finding.offset), finding.phrase)
        for passage in passages(path, FILES[path])
        for finding in findings(passage.text)
    ]
    assert found == [expected[path]]


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ("The file is no request.", ["is no"]),
        ("A report is to be read, and may not be written again.", ["is to be", "may not be written"]),
        ("What became of the run is told of nowhere.", ["What became of", "told"]),
        ("It has a process of its own and is looked at again.", ["of its own", "is looked at again"]),
        ("Objects are passed over, as the bucket has them.", ["passed over", "as the bucket has them"]),
    ],
)
def test_phrases_of_a_translation_are_found(text: str, phrases: list[str]) -> None:
    assert [finding.phrase for finding in findings(text)] == phrases


@pytest.mark.parametrize(
    "text",
    [
        "There is no image; the lease is no longer valid; it is no more than 3 bytes.",
        "When it comes to permissions, the run comes to an end.",
        "The container runs as user nobody.",
        "There are so many that they are listed in pages.",
        "It stands in for the service, in the way of nothing.",
        "The object may not be there yet.",
    ],
)
def test_usual_english_is_not_found(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("a.py", 'SQL = {"nobody": told}\nnobody = whoever(told)\nnames = ["nobody"]\n'),
        ("a.py", '"""Calls `nobody` and `told`; see https://example.com/nobody/told for the rest."""\n'),
        ("a.md", "Text of a page.\n\n```sh\nkill nobody told\n```\n"),
        ("a.yaml", "user: nobody\n"),
    ],
)
def test_code_and_names_are_not_prose(path: str, content: str) -> None:
    assert [finding for passage in passages(path, content) for finding in findings(passage.text)] == []


def test_a_folder_is_reported_with_its_rate_and_each_finding_with_its_repair() -> None:
    report = report_on([("docs/a.md", "Nobody knows the whole of this page.\n"), ("b.md", "A sound page.\n")])
    assert list(report.lines()) == ["docs/a.md:1: 'Nobody' → name it: no process, no other attempt, no user"]
    assert list(report.rates()) == [" 142.86 per 1,000      1 in      7 words  docs"]
    assert report.rate == 100


def test_the_checker_lists_the_findings_of_a_folder() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tests.repo.wording", "tests/repo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"at most {LIMIT} are allowed in the whole repository" in found.stdout, found.stderr


@pytest.mark.slow
def test_the_repository_has_few_such_phrases_and_no_replaced_name() -> None:
    report = read()
    assert report.names == ()
    assert report.rate <= LIMIT, "\n".join(report.rates())
    assert report.words > 100_000  # it has read everything


@pytest.mark.parametrize(
    "content",
    [
        "class Happened: ...",
        "def happened() -> None: ...",
        "async def rung() -> None: ...",
        "def hint_in(message: str) -> None: ...",
        "def f(happened: str) -> None: ...",
        "for happened in (): ...",
        "from flows import Happened",
        "from flows import Other as Happened",
    ],
)
def test_a_replaced_name_is_refused_where_it_is_defined_or_imported(content: str) -> None:
    (problem,) = report_on([("a.py", f"# What happened.\n{content}\n")]).names
    assert problem.startswith("a.py:2: the name '")


def test_a_replaced_name_is_a_word_like_any_other_in_prose() -> None:
    assert report_on([("a.py", '"""Once it has happened, tell."""\n')]).names == ()


def test_a_verb_and_a_claim_may_end_in_in() -> None:
    assert report_on([("a.py", "def is_number_in() -> bool: ...\ndef _take_in() -> None: ...\n")]).names == ()


def test_no_name_is_replaced_by_another_replaced_name() -> None:
    assert not REPLACED.keys() & set(REPLACED.values())
