"""Resolve every dependency group of pyproject.toml into requirements.lock, and export what is deployed.

    python -m trainmaster.deploy.lock [--upgrade]

One resolution serves all parts, so the functions and the trainer run what the tests ran.
The exports are constrained by the lock: a test compares them with it.
"""

import subprocess
import sys

from trainmaster.resources import ROOT

LOCK = "requirements.lock"
EVERY_GROUP = ("functions", "trainer", "image", "dev")
EXPORTS = {
    "functions": "functions/requirements.txt",
    "trainer": "trainer/requirements-cpu.txt",
    "trainer-cuda": "trainer/requirements-cuda.txt",
    "image": "trainer/installer.txt",
}

# No index is written into the files: whoever installs uses their own.
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


if __name__ == "__main__":
    main()
