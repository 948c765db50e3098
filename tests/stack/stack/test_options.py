"""Bad arguments are refused before anything starts, all at once."""

from pathlib import Path

import pytest

from trainmaster.cli.command import main


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 2) -> str:
    assert main(["up", *arguments]) == status
    return capsys.readouterr().err


def test_every_bad_argument_is_named_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    said = refusal(
        capsys,
        "--state", str(tmp_path / "state"),
        "--image", f"a={tmp_path / 'missing'}",
        "--image", f"b={tmp_path / 'empty'}",
        "--functions", str(tmp_path / "empty"),
        "--project", "No_Project",
        "--port-base", "70000",
        "--capacity", "0",
        "--tick-s", "nan", "--grace-s", "-1",
        "--retry-min-s", "9", "--retry-max-s", "3",
    )  # fmt: skip
    for expected in (
        "Image a: the directory",
        "Image b: no Dockerfile can be read at",
        "No such file or directory; write one, for example with the lines `FROM python:3.11-slim`, `WORKDIR /app`,",
        "the directory has no main.py; `make stage`",
        "--project 'No_Project': a project id has 6 to 30",
        "--port-base 70000: expected a port from 1 to 65531",
        "--capacity 0: expected at least one replica",
        "--tick-s nan: expected a number of seconds above 0",
        "--grace-s -1.0: expected a number of seconds from 0",
        "--retry-min-s 9.0, --retry-max-s 3.0: expected seconds from 0 to 600",
    ):
        assert expected in said
    assert not (tmp_path / "state").exists()


def test_an_image_without_an_equals_sign_is_refused_with_an_example(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refusal(capsys, "--image", "trainer")
    assert "expected URI=DIR, found 'trainer'; for example: example/trainer=./trainer" in said


def test_a_state_folder_that_cannot_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    said = refusal(capsys, "--state", str(tmp_path / "file" / "state"), status=1)
    assert "Cannot write to the state folder" in said
    assert "--state DIR" in said


def test_the_isolation_may_come_from_a_variable(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRAINMASTER_ISOLATION", "some")
    said = refusal(capsys)
    assert "'some' is not one of 'enforced', 'none'" in said
    assert "TRAINMASTER_ISOLATION" in said


@pytest.mark.parametrize(
    ("option", "content", "reason"),
    [
        ("--quota", "quotas: {r: {replicas: x}}", "$.quotas.r.replicas"),
        ("--quota", "quotas: {", "cannot read the file"),
        ("--quota", "# nothing\n", "the file is empty"),
        ("--quota", None, "file.yaml': No such file or directory.\n"),
        ("--injections", "{name: a, at: disk.write, kind: drop}", "$.at: expected SERVICE.METHOD"),
        ("--injections", "injections: {", "cannot read the file"),
        ("--injections", None, "No such file or directory.\n"),
    ],
)
def test_an_invalid_file_is_refused_before_anything_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, content: str | None, reason: str
) -> None:
    path = tmp_path / "file.yaml"
    if content is not None:
        path.write_text(content)
    said = refusal(capsys, "--state", str(tmp_path / "state"), option, str(path))
    assert f"{option} {str(path)!r}" in said
    assert reason in said
    assert not (tmp_path / "state").exists()
