"""A workload of the user's own, as `--workload=my_package.module`."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import run_to_end
from trainer.faults import Unusable
from trainer.task import command_from, main

ROOT = Path(__file__).resolve().parents[2]
WHOLE = """
from trainer.settings.setting import Setting, number
from trainer.workload import Data, Workload
{before}
WORKLOAD = Workload(build=lambda run: None, data=lambda run: None, {arguments})
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package in the working directory, forgotten after the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    name = f"own_{tmp_path.name.replace('-', '_')}"
    (tmp_path / name).mkdir()
    yield tmp_path / name
    for each in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[each]


def asked(package: Path, text: str, *arguments: str) -> list[str]:
    """A command line whose workload is a module of this package, with this text."""
    (package / "module.py").write_text(text)
    return [f"--workload={package.name}.module", *arguments]


def test_its_flags_and_defaults_count(package: Path) -> None:
    own = "flags={'rate': Setting(number(maximum=1), '', 0.5)}, defaults={'epochs': 7}"
    text = WHOLE.format(before="", arguments=own)
    command = command_from(asked(package, text, "--rate=0.25", "--reported_metrics=mae"))
    assert command.name == f"{package.name}.module"
    assert (command.settings.epochs, command.settings.batch_size, command.flags) == (7, 32, {"rate": 0.25})
    with pytest.raises(Unusable) as caught:
        command_from([*asked(package, text), "--rate=2", "--dataset=cassava"])
    assert caught.value.faults == (
        "Unknown flag '--dataset'. `python -m trainer.task --help` lists all flags.",
        "--rate=2: expected a number of at most 1; found '2'.",
    )


def test_the_launcher_of_the_trainers_page_runs_a_workload_beside_it(package: Path) -> None:
    page = (ROOT / "docs" / "reference" / "trainer-library.md").read_text()
    launcher = page.partition("`launch.py`")[2].partition("```python\n")[2].partition("```")[0]
    (package.parent / "launch.py").write_text(launcher)
    own = "flags={'rate': Setting(number(), 'of the optimizer', 0.5)}"
    flags = asked(package, WHOLE.format(before="", arguments=own), "--help")
    done = run_to_end(
        [sys.executable, "launch.py", *flags], env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "--rate" in done.stdout


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "has no WORKLOAD; expected a trainer.workload.Workload"),
        ("WORKLOAD = {'build': print}", "has a dict as WORKLOAD; expected a trainer.workload.Workload"),
        (WHOLE.format(before="1 / 0", arguments=""), "failed (ZeroDivisionError: division by zero)"),
        ("import no_such_package", "failed (ModuleNotFoundError: No module named 'no_such_package')"),
        ("def build(:", "failed (SyntaxError: invalid syntax"),
        (
            WHOLE.format(before="", arguments="flags={'epochs': Setting(number(), '', 1)}"),
            "declares the flag 'epochs': a name must be a Python identifier and differ",
        ),
        (
            WHOLE.format(before="", arguments="flags={'a-b': Setting(number(), '', 1)}"),
            "declares the flag 'a-b'",
        ),
        (
            WHOLE.format(before="", arguments="defaults={'epoch': 2}"),
            "has a default for 'epoch', which is not a common setting. Did you mean 'epochs'?",
        ),
        (
            WHOLE.format(before="", arguments="defaults={'epochs': 0}"),
            "--epochs=0: expected a whole number of at least 1; found 0.",
        ),
    ],
)
def test_a_module_that_cannot_be_used_is_refused_with_the_repair(
    package: Path, text: str, expected: str
) -> None:
    with pytest.raises(Unusable) as caught:
        main(asked(package, text), {})
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(
            (name, r"^Unknown workload .*; expected one of .*, or your own as")
            for name in ("own.", ".own", ".")
        ),
        (
            "no_such_package.module",
            r"^--workload=no_such_package\.module: there is no module no_such_package in /",
        ),
    ],
)
def test_a_name_that_leads_to_no_module_is_refused_with_what_is_expected(name: str, expected: str) -> None:
    with pytest.raises(Unusable, match=expected):
        command_from([f"--workload={name}"])
