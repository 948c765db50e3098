"""What packages still need, and what building them takes, without installing anything."""

import tarfile
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

from trainmaster.local.jobs.images.package_runner import InstallError, build_needs, missing, needs_of


class Here(Distribution):
    """A distribution that is nothing but its metadata."""

    def __init__(self, name: str, version: str, *needs: str) -> None:
        self._lines = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {need}" for need in needs)]

    def read_text(self, filename: str) -> str | None:
        return "\n".join(["Metadata-Version: 2.1", *self._lines]) if filename == "METADATA" else None

    def locate_file(self, path: object) -> Path:
        raise FileNotFoundError(path)


HAVE: dict[str, Distribution] = {
    "numpy": Here("numpy", "2.1.0"),
    "my-lib": Here("My_Lib", "1.0rc1", "numpy", "fancy>=2; extra == 'draw'", "nothere; python_version < '3'"),
}


@pytest.mark.parametrize(
    ("needs", "lacking"),
    [
        ([], set()),
        (["numpy", "NumPy>=2", "my.lib", "My-Lib>=1.0rc0"], set()),
        (["numpy<2"], {"numpy<2"}),
        (["scipy>=1", "numpy"], {"scipy>=1"}),
        (["my-lib[draw]"], {"fancy>=2"}),
        (["my-lib[none]"], set()),
        (["my-lib>=2", "scipy"], {"my-lib>=2", "scipy"}),
    ],
)
def test_what_is_not_here_or_not_as_asked_is_missing(needs: list[str], lacking: set[str]) -> None:
    assert missing(needs, HAVE) == lacking


def test_needs_are_those_of_this_machine_and_of_the_extras_that_are_asked_for() -> None:
    lib = HAVE["my-lib"]
    assert needs_of(lib) == ["numpy"]
    assert needs_of(lib, ["draw"]) == ["numpy", "fancy>=2"]
    assert needs_of(lib, ["draw"], only_extras=True) == ["fancy>=2"]


def archive(path: Path, files: dict[str, str]) -> Path:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as made:
            for name, text in files.items():
                made.writestr(name, text)
    else:
        source = path.with_suffix(".d")
        for name, text in files.items():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_text(text)
        with tarfile.open(path, "w:gz") as made:
            made.add(source, ".")
    return path


PROJECT = "[build-system]\nrequires = ['hatchling>=1', 'tomli; python_version < \"3.11\"']\nbuild-backend = 'hatchling.build'\n"


@pytest.mark.parametrize("name", ["p.tar.gz", "p.zip"])
def test_a_source_distribution_says_what_builds_it_and_setuptools_does_where_it_says_nothing(
    tmp_path: Path, name: str
) -> None:
    told = archive(tmp_path / name, {"p-1/pyproject.toml": PROJECT, "p-1/vendor/pyproject.toml": "broken ["})
    assert build_needs(told) == ["hatchling>=1"]
    silent = archive(tmp_path / f"silent-{name}", {"p-1/setup.py": "", "p-1/p.py": ""})
    assert build_needs(silent) == ["setuptools>=40.8.0"]
    assert build_needs(tmp_path / "p-1-py3-none-any.whl") == []


@pytest.mark.parametrize("content", [b"", b"no archive"])
def test_what_is_no_archive_is_refused_with_what_is_taken(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "p.tar.gz").write_bytes(content)
    with pytest.raises(InstallError, match=r"'p.tar.gz' is no wheel \(.whl\), and no source distribution"):
        build_needs(tmp_path / "p.tar.gz")


def test_a_broken_project_file_is_named(tmp_path: Path) -> None:
    broken = archive(tmp_path / "p.zip", {"p-1/pyproject.toml": "broken ["})
    with pytest.raises(InstallError, match=r"pyproject\.toml can be read"):
        build_needs(broken)
