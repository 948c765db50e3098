"""Resolve every dependency group of pyproject.toml into requirements.lock, and export the deployed requirements.

Then pin the images that builds start from to their present digests.

    python -m tools.lock [--upgrade]

All parts share one resolution, so the functions and the trainer run the versions that were tested.
The lock constrains the exports; a test compares them.
"""

import subprocess
import sys

from tools.images import CannotPinError, pin_images
from trainmaster.resources import ROOT

LOCK = "requirements.lock"
EVERY_GROUP = ("functions", "trainer", "image", "dev")
EXPORTS = {
    "functions": "functions/requirements.txt",
    "trainer": "trainer/requirements-cpu.txt",
    "trainer-cuda": "trainer/requirements-cuda.txt",
    "image": "trainer/installer.txt",
}

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


def main() -> None:
    compile_requirements(EVERY_GROUP, LOCK, "pyproject.toml", "--all-extras", *sys.argv[1:])
    for group, output in EXPORTS.items():
        compile_requirements((group,), output, "--constraint", LOCK)
    try:
        pin_images(ROOT)
    except CannotPinError as error:
        sys.exit(f"The packages are locked. {error}")


if __name__ == "__main__":
    main()
