"""Resolve every dependency group of pyproject.toml into requirements.lock, and export the deployed requirements.

Then pin the images that builds start from to their present digests.

    python -m tools.lock [--upgrade]

All parts share one resolution, so the functions and the trainer run the versions that were tested.
The lock constrains the exports; a test compares them. That of the functions is deployed with them, so it has only the
hashes of what their machines may install, a fifth of all.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Collection
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import parse_wheel_filename

from tools.images import CannotPinError, pin_images
from trainmaster.resources import ROOT

LOCK = "requirements.lock"
EVERY_GROUP = ("functions", "trainer", "image", "dev")
EXPORTS = {
    "functions": "functions/requirements.txt",
    "trainer": "trainer/requirements-cpu.txt",
    "trainer-cuda": "trainer/requirements-cuda.txt",
    "image": "trainer/installer.txt",
    "publish": "tools/publish.txt",
}
PYTHONS = ((3, 11), (3, 12), (3, 13))
PLATFORMS = [
    f"manylinux_2_{minor}_{machine}" for minor in range(36, 4, -1) for machine in ("x86_64", "aarch64")
]
PLATFORMS += ["manylinux2014_x86_64", "manylinux2014_aarch64"]
"""Of the functions: Linux with a glibc of at most 2.36, that of Debian 12."""
_HASH = re.compile(r" \\\n    --hash=sha256:(?P<sha256>[0-9a-f]{64})")

# The files name no package index: users install from their own.
OPTIONS = (
    "--generate-hashes",
    "--universal",
    "--python-version=3.11",
    "--no-emit-index-url",
    "--no-emit-find-links",
    "--no-header",
    "--no-annotate",
    "--quiet",
)


def compile_requirements(groups: tuple[str, ...], output: str, *more: str) -> None:
    """Write the pinned, hashed closure of `groups` to `output`, relative to the repository's root.

    Raises:
        subprocess.CalledProcessError: no set of versions satisfies the groups, or no index answers.
    """
    command = [sys.executable, "-m", "uv", "pip", "compile", *OPTIONS, *more, "--output-file", output]
    for group in groups:
        command += ["--group", group]
    subprocess.run(command, check=True, cwd=ROOT)


def installable_hashes(group: str) -> set[str]:
    """The SHA-256 hashes of the wheels of the group's closure that a function's machine may install.

    Raises:
        subprocess.CalledProcessError: as `compile_requirements`.
    """
    with tempfile.TemporaryDirectory() as folder:
        resolution = Path(folder, "pylock.toml")
        compile_requirements((group,), str(resolution), "--format=pylock.toml", "--constraint", LOCK)
        packages = tomllib.loads(resolution.read_text())["packages"]
    tags = supported_tags()
    wheels = [wheel for package in packages for wheel in package.get("wheels", ())]
    return {
        wheel["hashes"]["sha256"]
        for wheel in wheels
        if not tags.isdisjoint(parse_wheel_filename(wheel["url"].rpartition("/")[2])[3])
    }


def supported_tags() -> frozenset[Tag]:
    """The tags of wheels that a function's machine may install."""
    return frozenset(
        tag
        for python in PYTHONS
        for tags in (
            cpython_tags(python, platforms=PLATFORMS),
            compatible_tags(python, f"cp{python[0]}{python[1]}", PLATFORMS),
        )
        for tag in tags
    )


def with_hashes(requirements: str, hashes: Collection[str]) -> str:
    """The requirements without the hashes of other files. A package of which no file is among them keeps all of its own."""
    blocks = re.split(r"\n(?=\S)", requirements)
    return "\n".join(
        _HASH.sub(lambda found: found[0] if found["sha256"] in hashes else "", block)
        if any(found["sha256"] in hashes for found in _HASH.finditer(block))
        else block
        for block in blocks
    )


def main() -> None:
    compile_requirements(EVERY_GROUP, LOCK, "pyproject.toml", "--all-extras", *sys.argv[1:])
    for group, output in EXPORTS.items():
        compile_requirements((group,), output, "--constraint", LOCK)
    deployed = ROOT / EXPORTS["functions"]
    deployed.write_text(with_hashes(deployed.read_text(), installable_hashes("functions")))
    try:
        pin_images(ROOT)
    except CannotPinError as error:
        sys.exit(f"The packages are locked. {error}")


if __name__ == "__main__":
    main()
