"""Options of `submit`: a folder as an image here and in the cloud, and the program's own arguments."""

from pathlib import Path
from typing import Any

import click
import pytest

from trainmaster.cli.command import main
from trainmaster.cli.exits import Stop
from trainmaster.cli.submit.options import Following, check_together, image_of
from trainmaster.client.context import context_in_cloud

CLOUD = context_in_cloud("my-project", "us-central1")


def test_an_image_by_its_uri_stays_as_it_is() -> None:
    assert (
        image_of("us-central1-docker.pkg.dev/my-project/r/i:1", CLOUD)
        == "us-central1-docker.pkg.dev/my-project/r/i:1"
    )
    assert image_of(None, CLOUD) is None


def test_a_folder_must_be_built_before_the_cloud_can_run_it(tmp_path: Path) -> None:
    folder = tmp_path / "my image"
    folder.mkdir()
    (folder / "Dockerfile").touch()
    with pytest.raises(Stop) as stop:
        image_of(str(folder), CLOUD)
    uri = "us-central1-docker.pkg.dev/my-project/trainmaster/my-image:latest"
    assert stop.value.status == 2
    assert f"gcloud builds submit --project my-project --tag {uri} '{folder}'" in stop.value.message
    assert f"--image {uri}" in stop.value.message


@pytest.mark.parametrize(
    ("path", "said"),
    [
        *(
            (path, f"There is no folder '{path}'. Name a folder with a Dockerfile")
            for path in ("/nope", "./nope", "../nope/trainer", "~/nope")
        ),
        ("{}", "has no Dockerfile"),
        ("{}/file", "is not a folder"),
    ],
)
def test_what_is_no_folder_with_a_dockerfile_is_refused_as_an_image(
    path: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Stop) as stop:
        image_of(path.format(tmp_path), CLOUD)
    assert (stop.value.status, said in stop.value.message) == (2, True)


@pytest.mark.parametrize(
    "words", [["--script", "slow.py", "--epochs=3"], ["--fast", "a.yaml"], ["-v", "--set", "a=1", "a.yaml"]]
)
def test_the_place_of_the_programs_own_arguments_is_named(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["submit", *words]) == 2
    assert "The program's own arguments go behind --, at the end.\n" in capsys.readouterr().err


def test_a_misspelt_option_without_a_program_gets_the_nearest_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["submit", "--scirpt", "slow.py"]) == 2
    said = capsys.readouterr().err
    assert "'--script'" in said
    assert "behind --" not in said


@pytest.mark.parametrize(
    ("files", "key", "following", "said"),
    [
        ((), None, {}, "Name a request file, or --script train.py."),
        (("a.yaml", "b.yaml"), "k", {}, "--key names one run"),
        (("a.yaml", "b.yaml"), None, {"shows_logs": True}, "--logs follows one run"),
        (("a.yaml",), None, {"timeout_s": 300.0}, "--timeout needs --wait or --logs"),
    ],
)
def test_options_that_contradict_each_other_are_wrong_usage(
    files: tuple[str, ...], key: str | None, following: dict[str, Any], said: str
) -> None:
    asked = {"waits": False, "shows_logs": False, "requires_model": False, "timeout_s": None, **following}
    with pytest.raises(click.UsageError, match=said):
        check_together(files, Following(**asked), script=None, module=None, image=None, key=key)


def test_a_root_without_a_name_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["submit", "--script", __file__, "--root", ""]) == 2
    assert "'--root': Directory '' does not exist" in capsys.readouterr().err
