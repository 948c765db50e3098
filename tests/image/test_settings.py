"""Tools and settings that building needs of a machine, known before anything is built."""

import sys
from pathlib import Path

import pytest

from tests.processes import run_to_end
from trainmaster.deploy.local_image import revision_of, secrets
from trainmaster.version import VERSION

from .conftest import ROOT


def test_where_nothing_builds_images_it_is_said_what_to_install() -> None:
    command = [sys.executable, "-m", "trainmaster", "image"]
    done = run_to_end(command, cwd=ROOT, env={"PATH": "/nowhere"})
    assert done.returncode == 1
    assert "apt-get install buildah" in done.stderr


def test_the_settings_that_the_environment_names_are_given_to_the_build(tmp_path: Path) -> None:
    for name in ("pip.conf", "uv.toml", "ca.pem"):
        (tmp_path / name).touch()
    environment = {
        "PIP_CONFIG_FILE": str(tmp_path / "pip.conf"),
        "UV_CONFIG_FILE": str(tmp_path / "uv.toml"),
        "SSL_CERT_FILE": str(tmp_path / "ca.pem"),
    }
    assert dict(secrets(environment)) == {
        "pip": tmp_path / "pip.conf",
        "uv": tmp_path / "uv.toml",
        "ca": tmp_path / "ca.pem",
    }


def test_a_file_that_is_not_there_is_no_setting(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    named = {"PIP_CONFIG_FILE": gone, "UV_CONFIG_FILE": gone, "PIP_CERT": gone}
    assert dict(secrets(named)) == {}


def test_the_revision_of_a_tree_outside_of_git_is_the_release(tmp_path: Path) -> None:
    assert revision_of(tmp_path) == f"v{VERSION}"


def test_the_revision_of_a_checkout_is_unknown_on_a_machine_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert revision_of(tmp_path) == "unknown"
