"""The words of the project are plain English: the checker finds what is not, and the whole repository passes it."""

import pytest

from tests.repo.wording import LIMIT, report_on, repository

FILES = {
    "a.py": (
        'X = 1  # a port\n\n\ndef f():\n    """A port\n    that whoever asks may use."""\n',
        6,
        "whoever",
    ),
    "b.py": (
        'raise ValueError(\n    f"found {value!r}: "\n    "an integer is wanted here"\n)\n',
        2,
        "is wanted",
    ),
    "c.py": ("x = 1\n# The reconciler looks at what\n# nobody has reported yet.\ny = 2\n", 3, "nobody"),
    "d.md": ("# A page\n\nThe run goes\non when the lease is over.\n", 3, "goes on"),
    "e.yaml": ("a: 1\ndescription: the place of a run that nobody has admitted\n", 2, "nobody"),
    "f.tf": ('resource "a" "b" {\n  # Terraform is told about it by the topology.\n}\n', 2, "told"),
    "g.json": ('{\n  "description": "Runs that wait for ever have no slot"\n}\n', 2, "for ever"),
    "Makefile": ("all:\n\t@true  # mended by make format\n", 2, "mended"),
    "Dockerfile": ("FROM scratch\n# The image has a user of its own.\n", 2, "of its own"),
}


def phrases(text: str, path: str = "a.md") -> list[str]:
    return [finding.phrase for finding in report_on([(path, text)]).findings]


@pytest.mark.parametrize("path", FILES)
def test_a_phrase_is_found_in_the_prose_of_each_kind_of_file_at_its_line(path: str) -> None:
    content, line, phrase = FILES[path]
    found = [(finding.line, finding.phrase) for finding in report_on([(path, content)]).findings]
    assert found == [(line, phrase)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The file is no request.", ["is no"]),
        ("A report may not be written again.", ["may not be written"]),
        ("It has a process of its own and is looked at again.", ["of its own", "is looked at"]),
        ("Objects are passed over, as the bucket has them.", ["passed over", "as the bucket has them"]),
        ("There is no image; the lease is no longer valid; it is no more than 3 bytes.", []),
        ("When it comes to permissions, the run comes to an end.", []),
        ("The container runs as user nobody.", []),
        ("It stands in for the service, in the way of nothing.", []),
    ],
)
def test_only_phrases_of_a_translation_are_found(text: str, expected: list[str]) -> None:
    assert phrases(text) == expected


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
    assert phrases(content, path) == []


def test_a_folder_is_reported_with_its_rate_and_each_finding_with_its_repair() -> None:
    report = report_on([("docs/a.md", "Nobody knows the whole of this page.\n"), ("b.md", "A sound page.\n")])
    assert [str(finding) for finding in report.findings] == [
        "docs/a.md:1: 'Nobody' → name it: another process, any client, no user"
    ]
    assert list(report.rates()) == [" 142.86 per 1,000      1 in      7 words  docs"]
    assert report.rate == 100


@pytest.mark.slow
def test_the_repository_has_few_such_phrases() -> None:
    report = report_on(repository())
    assert report.rate <= LIMIT, "\n".join(report.rates())
    assert report.words_in.total() > 100_000  # it has read everything
