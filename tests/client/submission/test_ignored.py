"""Files that git would not track: compared with git itself, and bounded whatever a .gitignore says."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.gitignore.ignored import Allowance, IgnoredPaths, ignored_above
from trainmaster.client.submission.gitignore.lines import Gitignore, GitignoreError

NAMES = ("a", "b", "ab", "a b", "a]", "-", "a*b", "a\\b", "!a", "#a", "A", "0", "é", "a ")
PATHS = tuple(
    f"{folder}{name}{leaf}" for folder in ("", "aa/", "x/ab/") for name in NAMES for leaf in ("", "1/b")
)
"""Files, and folders with a file: `a` beside `a1/b`."""
PIECES = (
    *("a", "b", "ab", "x", "1", "A", "é", "*", "**", "***", "?", "/", "/**", "**/", "/**/", "a*", "!", "#", " ", "\\ ", "\\"),
    *("[", "]", "[a]", "[!a]", "[a-b]", "[^-b]", "[]a]", "[!]a]", "[[:alpha:]]", "[[:alpha:]-b]", "[[:no:]]", "[[:", "[a-"),
    *("[\\]]", "[!/]", "[+-9]", "\\/", "\\*", "-", "\r"),
)  # fmt: skip
LINES = st.lists(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), max_size=4).map("\n".join)


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not on the path")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    for name in PATHS:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return root


def kept(root: Path, folder: Path, ignored: IgnoredPaths) -> Iterator[str]:
    for entry in os.scandir(folder):
        path = Path(entry.path)
        if path.name == ".git" or ignored.holds(path, is_folder=entry.is_dir()):
            continue
        if entry.is_dir():
            yield from kept(root, path, ignored)
        else:
            yield path.relative_to(root).as_posix()


@pytest.mark.slow(5)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(LINES)
def test_any_lines_ignore_what_git_ignores(repository: Path, lines: str) -> None:
    (repository / ".git" / "info" / "exclude").write_text(lines, newline="")
    command = ["git", "-C", str(repository), "ls-files", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    ours = IgnoredPaths(files=((repository, Gitignore(lines.encode())),))
    assert set(kept(repository, repository, ours)) == set(filter(None, listed))


@pytest.mark.parametrize("line", ["data\\", "[a", "[[:none:]]", "a/\\", "!", "/", "//", "\\", ""])
def test_a_line_that_git_takes_and_that_matches_nothing_is_passed_by(line: str) -> None:
    read = Gitignore(f"{line}\n*.csv\n".encode())
    assert read.verdict(b"data", is_folder=True) is None
    assert read.verdict(b"a.csv", is_folder=False) is True


@pytest.mark.parametrize(
    "lines", ["*a" * 10 + "b", "**/a/" * 20 + "b", "[a-z]*" * 300 + "!", "?*" * 300 + "b"], ids=len
)
def test_a_line_that_could_match_in_many_ways_is_decided_at_once(lines: str) -> None:
    """Python's regular expressions take above 20 s for the first."""
    read = Gitignore(lines.encode())
    assert read.verdict(b"a/" * 20 + b"a" * 250, is_folder=False) is None


def test_twenty_thousand_names_are_looked_up() -> None:
    read = Gitignore(b"\n".join(b"out%d/\n/build/out%d" % (number, number) for number in range(20_000)))
    assert read.verdict(b"src/out19999", is_folder=True) is True
    assert read.verdict(b"src/out19999", is_folder=False) is None
    assert read.verdict(b"build/out7", is_folder=False) is True
    assert read.verdict(b"src/build/out7", is_folder=False) is None


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"a\n" * 300_000, "has more than 524288 bytes"),
        (b"*a" * 17_000, "has too many wildcards"),
        (b"*a\n!*b\n" * 40_000, "has too many wildcards"),
        (b"\n".join(b"*a%d" % number for number in range(3000)), "has too many wildcards"),
    ],
)
def test_a_gitignore_beyond_what_is_matched_is_refused(content: bytes, why: str, tmp_path: Path) -> None:
    with pytest.raises(GitignoreError, match=why):
        Gitignore(content)
    (tmp_path / ".gitignore").write_bytes(content)
    with pytest.raises(ClientRefused, match=f"gitignore' {why}"):
        ignored_above(tmp_path)


def test_files_without_end_stop_at_the_time_allowed(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.csv\n")
    ignored = IgnoredPaths(allowance=Allowance(left_s=0)).within(tmp_path)
    with pytest.raises(ClientRefused, match=r"The patterns of .*gitignore' take more than 10 s to match"):
        ignored.holds(tmp_path / "a.csv", is_folder=False)
