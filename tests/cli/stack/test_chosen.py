"""`trainmaster stack status` and `env` use the chosen stack, else that of the folder or of a parent."""

import subprocess
from pathlib import Path

import pytest

from tests.command import trainmaster
from tests.ready_stack import stack_on
from trainmaster.client.context import keep_choice
from trainstack.find import register_stack


@pytest.mark.parametrize("verb", ["status", "env"])
def test_a_chosen_stack_is_meant_in_any_folder(tmp_path: Path, verb: str) -> None:
    here = tmp_path / "here"
    here.mkdir()
    with stack_on(tmp_path / "far") as far:
        (far / "user").mkdir()
        (far / "user/gcloud.env").write_text(f"# of {far}\n")
        variable = {"HOME": str(tmp_path), "TRAINMASTER_CONTEXT": f"local:{far}"}
        chosen = trainmaster("stack", verb, cwd=here, environment=variable)
        assert str(far) in chosen.out + chosen.err
        keep_choice(f"local:{far}", tmp_path / ".config/trainmaster")
        kept = {"HOME": str(tmp_path)}
        assert trainmaster("stack", verb, cwd=here, environment=kept) == chosen
        other = trainmaster("stack", verb, "--state", "other", cwd=here, environment=kept)
        assert (other.status, "'other'" in other.err) == (4, True)


def test_without_a_choice_or_with_one_in_the_cloud_it_is_the_stack_of_the_folder(tmp_path: Path) -> None:
    for choice in ({}, {"TRAINMASTER_CONTEXT": "some-project/us-central1"}):
        done = trainmaster("stack", "status", cwd=tmp_path, environment={"HOME": str(tmp_path), **choice})
        assert done.status == 4
        assert "No stack is running on '.trainmaster'." in done.err


@pytest.mark.parametrize("name", [".trainmaster", "mine"])
def test_in_a_subfolder_it_is_the_stack_of_the_nearest_parent(tmp_path: Path, name: str) -> None:
    below = tmp_path / "project" / "data" / "raw"
    below.mkdir(parents=True)
    settings = {"HOME": str(tmp_path), "TRAINMASTER_CONFIG": str(tmp_path / "settings")}
    with stack_on(tmp_path / "project" / name) as state:
        (state / "user").mkdir()
        (state / "user/gcloud.env").write_text("export CLOUDSDK_AUTH=1\n")
        register_stack(state, tmp_path / "settings")
        printed = trainmaster("stack", "env", cwd=below, environment=settings)
        assert (printed.status, printed.err) == (0, "")
        assert "export CLOUDSDK_AUTH=1" in printed.out
        status = trainmaster("stack", "status", cwd=below, environment=settings)
        assert str(state) in status.err, "only a real stack holds the lock"


@pytest.mark.parametrize(
    ("words", "choice"),
    [
        ((), {}),
        (("--gateway",), {}),
        (("--unknown",), {}),
        ((), {"TRAINMASTER_CONTEXT": "local:nowhere"}),
        ((), {"TRAINMASTER_CONTEXT": "no/context/at all"}),
    ],
)
def test_without_a_stack_the_eval_fails_and_what_follows_it_does_not_run(
    tmp_path: Path, words: tuple[str, ...], choice: dict[str, str]
) -> None:
    done = trainmaster("stack", "env", *words, cwd=tmp_path, environment={"HOME": str(tmp_path), **choice})
    assert done.status != 0
    assert done.err
    shell = ["bash", "-c", 'eval "$1" && echo copied', "bash", done.out]
    assert subprocess.run(shell, capture_output=True, text=True, check=False).stdout == ""


def test_help_exits_successfully(tmp_path: Path) -> None:
    done = trainmaster("stack", "env", "--help", cwd=tmp_path, environment={"HOME": str(tmp_path)})
    assert done.status == 0
    assert "\nfalse\n" not in done.out
