"""What a request says of its sender, with the user's own git."""

from pathlib import Path

import pytest

from tests.client.served import served_context
from tests.processes import run_to_end
from trainmaster.client.submission.sender import read_commit, sender_metadata
from trainmaster.orchestrator.core.runs.sender import Commit


def git(folder: Path, *words: str) -> str:
    name = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    return run_to_end(["git", *name, *words], cwd=folder, check=True).stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-b", "main")
    (tmp_path / "train.py").write_text("print(1)\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    return tmp_path


def test_the_commit_of_a_folder_says_whether_its_files_differ(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD").strip()
    assert read_commit(repository) == Commit(id=head, branch="main", dirty=False)
    (repository / "new.py").write_text("")
    assert read_commit(repository) == Commit(id=head, branch="main", dirty=True)


def test_changes_beside_the_folder_do_not_count(repository: Path) -> None:
    (repository / "jobs").mkdir()
    (repository / "jobs" / "train.py").write_text("")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "second")
    (repository / "train.py").write_text("print(2)\n")
    found = read_commit(repository / "jobs")
    assert found is not None
    assert found.dirty is False


def test_a_branch_that_is_not_checked_out_is_the_one_of_ci(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "checkout", "--detach")
    monkeypatch.setenv("GITHUB_REF_NAME", "feature")
    found = read_commit(repository)
    assert found is not None
    assert found.branch == "feature"


def test_no_program_of_a_repositorys_configuration_is_started(repository: Path) -> None:
    started = repository.parent / f"{repository.name}-started"
    (repository / ".gitattributes").write_text("* filter=e=vil\n")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "attributes")
    for key in ("filter.e=vil.clean", "filter.e=vil.process", "core.fsmonitor"):
        git(repository, "config", key, f"touch {started}; false")
    git(repository, "config", "filter.e=vil.required", "true")
    (repository / "train.py").write_text("print(2)\n")
    found = read_commit(repository)
    assert (found is not None, started.exists()) == (True, False)


@pytest.mark.parametrize("breaks", ["no repository", "no commit", "no git", "no folder"])
def test_a_folder_without_a_commit_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    if breaks == "no commit":
        git(tmp_path, "init")
    if breaks == "no git":
        monkeypatch.setenv("PATH", str(tmp_path))
    assert read_commit(tmp_path / "absent" if breaks == "no folder" else tmp_path) is None


def test_ci_names_its_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTOR", "anna")
    with served_context(tmp_path) as served:
        commit = Commit(id="04889a2", branch="ümlaut", dirty=True)
        assert sender_metadata(served.clients, commit) == {
            "trainmaster-by": "anna",
            "trainmaster-commit": "04889a2",
            "trainmaster-branch": "ümlaut",
            "trainmaster-dirty": "true",
        }


def test_a_login_name_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "BUILD_REQUESTEDFOREMAIL", "CIRCLE_USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LOGNAME", "ben")
    with served_context(tmp_path) as served:
        assert sender_metadata(served.clients) == {"trainmaster-by": "ben"}
