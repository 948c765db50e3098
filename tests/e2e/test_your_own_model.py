"""The tutorial "Your own model", read as a newcomer reads it: each of its commands is run, and must show what it shows."""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from uv import find_uv_bin

from trainmaster.local.jobs.images.indexes import settings_of_uv

from .project import ENDED, ROOT, START_DEADLINE_S, eventually, stop

PAGE = ROOT / "docs/tutorials/your-own-model.md"
SCRIPTS = {name: ROOT / "examples" / name / "train.py" for name in ("keras", "pytorch", "scikit_learn")}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
# The first use of an image builds its environment, of hundreds of megabytes.
DEADLINE_S = 400


def sections() -> dict[str, list[tuple[str, str]]]:
    """The language and text of every code block, by the section's heading."""
    parts = re.split(r"^## (.+)\n", PAGE.read_text(), flags=re.MULTILINE)
    return {title: BLOCK.findall(text) for title, text in zip(parts[1::2], parts[2::2], strict=True)}


class Reader:
    """Runs the page's commands in a folder of its own, in its first shell and its second.

    Attributes:
        folder: has the checkout's `examples`, and gets `.trainmaster`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._variables: list[str] = []
        path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path}
        (folder / "examples").symlink_to(ROOT / "examples")
        command = folder / "bin" / "trainmaster"  # of this checkout, wherever the environment was set up for
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m trainmaster "$@"\n')
        command.chmod(0o755)

    def start(self) -> "subprocess.Popen[bytes]":
        """The stack of the first section, once it is ready."""
        (_, command), (_, variables) = sections()["Start the stack"]
        self._variables = variables.splitlines()
        with (self.folder / "up.log").open("wb") as log:
            process = subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        ready = self.folder / ".trainmaster" / "stack.env"
        try:
            eventually(
                lambda: ready.exists() or process.poll() is not None,
                "the stack is ready",
                deadline_s=START_DEADLINE_S,
                hint=self.log,
            )
            assert ready.exists(), self.log()
        except BaseException:
            stop(process)
            raise
        return process

    def follow(self, title: str) -> list[str]:
        """What each command of a section printed at last.

        One that reads a status is repeated until the run has ended; one that reads a champion, until the run is in it.
        """
        commands = [line for kind, text in sections()[title] if kind == "sh" for line in text.splitlines()]
        printed: list[str] = []
        run_id = ""
        for command in commands:
            if "/status/" in command:
                printed.append(self._repeated(command, has_ended))
                run_id = json.loads(printed[-1])["run_id"]
            elif "/champions/" in command:
                printed.append(self._repeated(command, functools.partial(names, run_id)))
            else:
                printed.append(self.run(command))
        return printed

    def run(self, command: str) -> str:
        script = "\n".join([*self._variables, command])
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        not_yet = "No such file" in done.stderr and command.startswith("cat ")
        assert done.returncode == 0 or not_yet, (command, done.stderr, self.log())
        return done.stdout

    def log(self) -> str:
        return (self.folder / "up.log").read_text(errors="replace")[-3000:]

    def _repeated(self, command: str, is_enough: Callable[[str], bool]) -> str:
        def printed() -> str | None:
            text = self.run(command)
            return text if text and is_enough(text) else None

        return eventually(printed, command, deadline_s=DEADLINE_S, hint=lambda: self.run(command))


def names(run_id: str, document: str) -> bool:
    return f'"{run_id}"' in document


def has_ended(status: str) -> bool:
    return json.loads(status)["state"] in ENDED


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(tmp_path_factory.mktemp("tutorial"))
    process = reader.start()
    try:
        yield reader
    finally:
        stop(process)


def without_numbers(line: str) -> str:
    return re.sub(r"\d[\w.:-]*", "#", line.strip())


def assert_shown(title: str, printed: list[str]) -> None:
    """Every line that the section shows of an answer is in what was printed, but for its numbers."""
    found = {without_numbers(line) for text in printed for line in text.splitlines()}
    lines = [line for kind, text in sections()[title] if kind == "json" for line in text.splitlines()]
    assert lines
    assert [line for line in lines if without_numbers(line) not in found] == []


def has_cpu_torch() -> bool:
    """Whether the example's environment gets PyTorch without CUDA, as this machine is set up."""
    settings = settings_of_uv(os.environ, home=Path.home())
    command = [find_uv_bin(), "pip", "install", "--dry-run", "--reinstall", "--python", sys.executable]
    command += [*settings.options, "--requirement", str(SCRIPTS["pytorch"].with_name("requirements.txt"))]
    done = subprocess.run(
        command, env=settings.environment, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode == 0 and "nvidia" not in done.stderr


def test_the_scripts_are_short_and_import_nothing_of_ours() -> None:
    for script in SCRIPTS.values():
        text = script.read_text()
        assert len(text.splitlines()) < 60, script
        assert not re.search(r"^(from|import) (trainer|trainmaster|functions)\b", text, re.MULTILINE), script


def test_what_the_tutorial_quotes_stands_in_the_examples() -> None:
    written = "\n".join(path.read_text() for path in SCRIPTS.values())
    requests = [
        yaml.safe_load(path.read_text())
        for script in SCRIPTS.values()
        for path in script.parent.glob("*.yaml")
    ]
    quoted = [block for blocks in sections().values() for block in blocks]
    for text in (text for kind, text in quoted if kind == "python"):
        assert text in written
    for text in (text for kind, text in quoted if kind == "yaml"):
        parts = yaml.safe_load(text).items()
        assert any(parts <= request.items() for request in requests), text


def test_every_command_of_the_tutorial_is_run() -> None:
    source = Path(__file__).read_text()
    with_commands = {title for title, blocks in sections().items() if any(kind == "sh" for kind, _ in blocks)}
    assert with_commands
    assert not [title for title in with_commands if f'"{title}"' not in source]


@pytest.mark.slow(seconds=60)
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_keras_script_ends_with_its_model_and_metrics_on_record(reader: Reader) -> None:
    title = "One replica: Keras"
    *printed, files = reader.follow(title)
    assert_shown(title, printed)
    assert files.split() == ["metrics.json", "model.keras"]


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_two_replicas_of_a_pytorch_script_end_with_one_model_on_record(reader: Reader) -> None:
    if not has_cpu_torch():
        pytest.skip("no CPU build of PyTorch is to be had here, only the one with CUDA, of more than 2 GB")
    title = "Two replicas: PyTorch"
    printed = reader.follow(title)
    assert_shown(title, printed)
    assert json.loads(printed[-1])["metrics"]["val_accuracy"] > 0.9


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_scikit_learn_model_becomes_champion_and_a_tuning_beats_it(reader: Reader) -> None:
    first, then = "A champion: scikit-learn", "A tuning that beats it"
    assert_shown(first, reader.follow(first))
    printed = reader.follow(then)
    assert_shown(then, printed)
    champion, status = json.loads(printed[-1]), json.loads(printed[1])
    assert champion["current"]["run_id"] == status["run_id"]
    assert champion["current"]["model_uri"] == status["model_uri"]


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_failed_run_says_why(reader: Reader) -> None:
    title = "When it fails"
    printed = reader.follow(title)
    assert_shown(title, printed)
    (promised,) = re.findall(r"`reason` is the program's error, `(.+?)`,", PAGE.read_text())
    again = "cat $LEDGER/status/requests/broken.yaml.json"
    eventually(
        lambda: promised in json.loads(reader.run(again))["reason"],
        "the error in the reason",
        deadline_s=DEADLINE_S,
        hint=lambda: reader.run(again),
    )


@pytest.mark.slow
def test_the_stack_stops_when_it_is_told(reader: Reader) -> None:
    reader.follow("Stop the stack")
    assert not (reader.folder / ".trainmaster" / "stack.env").exists()
