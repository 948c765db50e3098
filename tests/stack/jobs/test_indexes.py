"""The package indexes of uv: those that its user has chosen, for uv or for pip."""

from pathlib import Path

import pytest

from trainstack.jobs.images.indexes import UvSettings, settings_of_uv


def settings(home: Path, **environ: str) -> UvSettings:
    """Without this machine's own configuration of pip, unless `environ` names one."""
    return settings_of_uv({"PIP_CONFIG_FILE": "/dev/null", **environ}, home=home)


def test_variables_of_pip_become_variables_of_uv(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        PIP_INDEX_URL="https://a.example/simple",
        PIP_EXTRA_INDEX_URL="https://b.example/s https://c.example/s",
        PIP_FIND_LINKS="/wheels /more",
        PIP_NO_INDEX="1",
    )
    assert found.options == ("--no-index",)
    assert {name: value for name, value in found.environment.items() if name.startswith("UV_")} == {
        "UV_DEFAULT_INDEX": "https://a.example/simple",
        "UV_INDEX": "https://b.example/s https://c.example/s",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_pips_configuration_files_hold_and_its_variables_stand_over_them(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text(
        "[global]\nindex-url = https://file.example/s\nfind-links =\n  /one\n  /two\n[install]\nno-index = no\n"
    )
    found = settings(tmp_path, PIP_CONFIG_FILE=str(file), PIP_INDEX_URL="https://variable.example/s")
    assert found.environment["UV_DEFAULT_INDEX"] == "https://variable.example/s"
    assert found.environment["UV_FIND_LINKS"] == "/one,/two"
    assert found.options == ()


def test_the_users_own_file_is_found_in_their_home(tmp_path: Path) -> None:
    (tmp_path / ".config" / "pip").mkdir(parents=True)
    (tmp_path / ".config" / "pip" / "pip.conf").write_text("[global]\nindex-url = https://home.example/s\n")
    found = settings_of_uv({}, home=tmp_path)
    assert found.environment["UV_DEFAULT_INDEX"] == "https://home.example/s"


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", "UV_CONFIG_FILE"])
def test_uvs_own_settings_stand_in_place_of_pips(tmp_path: Path, name: str) -> None:
    own = {name: "own", "UV_INDEX_STRATEGY": "first-index"}
    found = settings(tmp_path, PIP_INDEX_URL="https://pip.example/s", **own)
    assert {key: value for key, value in found.environment.items() if key.startswith("UV_")} == own


def test_a_damaged_file_is_left_to_pip_and_other_environments_do_not_count(tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("no section\n")
    found = settings(
        tmp_path, PIP_CONFIG_FILE=str(tmp_path / "pip.conf"), VIRTUAL_ENV="/v", UV_PYTHON="3.9", PATH="/bin"
    )
    assert found.environment["PATH"] == "/bin"
    assert not {"VIRTUAL_ENV", "UV_PYTHON"}.intersection(found.environment)
