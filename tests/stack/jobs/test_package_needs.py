"""Requirements of packages that are not met, without installing anything."""

from importlib.metadata import Distribution
from pathlib import Path

import pytest

from trainstack.jobs.images.package_runner import missing, needs_of


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
def test_absent_and_mismatched_requirements_are_missing(needs: list[str], lacking: set[str]) -> None:
    assert missing(needs, HAVE) == lacking


def test_needs_are_those_of_this_machine_and_of_the_extras_that_are_asked_for() -> None:
    lib = HAVE["my-lib"]
    assert needs_of(lib) == ["numpy"]
    assert needs_of(lib, ["draw"]) == ["numpy", "fancy>=2"]
    assert needs_of(lib, ["draw"], only_extras=True) == ["fancy>=2"]
