"""The example of a user's own tests, in a separate folder, with the plugin of pytest."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.processes import run_to_end

from .project import ROOT

EXAMPLE, PAGE = ROOT / "examples" / "tested", ROOT / "docs" / "how-to" / "test-your-own-code.md"
PLUGIN = ["-p", "trainmaster.pytest_plugin"]  # an installed package is found by its entry point

USES = """
import os
import pytest


def test_first(stack):
    assert os.environ["GOOGLE_CLOUD_PROJECT"] == stack.project
    assert stack.bucket().name != stack.bucket().name
    stack.inject("storage.buckets.insert", "error_before", code=403)
    assert [injection["at"] for injection in stack.injections()["injections"]] == ["storage.buckets.insert"]


def test_later(stack):
    assert not stack.injections()["injections"]
    with pytest.raises(Exception, match="has no file|No such file|cannot be read"):
        stack.submit("absent.yaml")
"""


def run_tests(folder: Path, *words: str) -> str:
    """What pytest printed in the folder, on whose tests no setting of this project has an effect."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-m", "pytest", *PLUGIN, "-p", "no:cacheprovider", "--rootdir", str(folder)]
    done = run_to_end([*command, *words], cwd=folder, env=environment)
    return done.stdout + done.stderr


@pytest.mark.slow(seconds=40)
@pytest.mark.parametrize("words", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_the_example_passes_and_names_are_new_and_an_injection_ends_with_its_test(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    project = shutil.copytree(EXAMPLE, tmp_path / "project")
    if not words:  # the two tests of USES are a sequence
        (project / "test_uses.py").write_text(USES)
    passed = 5 if words else 7
    assert re.search(rf"\b{passed} passed", said := run_tests(project, *words)), said


def test_a_run_that_uses_no_stack_imports_nothing_for_it() -> None:
    program = "import sys, pytest; known = set(sys.modules); import trainmaster.pytest_plugin; print(*sys.modules.keys() - known)"
    done = run_to_end([sys.executable, "-c", program], cwd=ROOT, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded - set(sys.stdlib_module_names) == {"trainmaster"}


def test_the_page_shows_the_example() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    example = "".join(path.read_text() for path in EXAMPLE.glob("*.py"))
    assert blocks
    for block in blocks:
        assert block.strip() in example
