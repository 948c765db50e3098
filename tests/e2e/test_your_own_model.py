"""The tutorial "Your own model": each of its commands is run, and must print what the page shows."""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from uv import find_uv_bin

from tests.processes import run_to_end
from trainmaster.client.files.downloaded import LIST
from trainstack.jobs.images.indexes import settings_of_uv

from .project import ROOT
from .reader import DEADLINE_S, Reader, sections, with_commands

PAGE = ROOT / "docs/tutorials/your-own-model.md"
SCRIPTS = {name: ROOT / "examples" / name / "train.py" for name in ("keras", "pytorch", "scikit_learn")}


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    reader = Reader(PAGE, tmp_path_factory.mktemp("tutorial"))
    try:
        reader.follow("Start the stack")
        yield reader
    finally:
        reader.stop()


def has_cpu_torch() -> bool:
    """Whether the example's environment gets PyTorch without CUDA, as this machine is set up."""
    settings = settings_of_uv(os.environ, home=Path.home())
    command = [find_uv_bin(), "pip", "install", "--dry-run", "--reinstall", "--python", sys.executable]
    command += [*settings.options, "--requirement", str(SCRIPTS["pytorch"].with_name("requirements.txt"))]
    done = run_to_end(command, env=settings.environment, timeout=120)
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
    quoted = [block for blocks in sections(PAGE).values() for block in blocks]
    for text in (text for kind, text in quoted if kind == "python"):
        assert text in written
    for text in (text for kind, text in quoted if kind == "yaml"):
        parts = yaml.safe_load(text).items()
        assert any(parts <= request.items() for request in requests), text


def test_every_command_of_the_tutorial_is_run() -> None:
    source = Path(__file__).read_text()
    assert not [title for title in with_commands(PAGE) if f'"{title}"' not in source]


@pytest.mark.slow(seconds=60)
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_keras_script_ends_with_its_model_and_metrics_on_record(reader: Reader) -> None:
    reader.follow("One replica: Keras")
    downloaded = sorted(path.name for path in (reader.folder / "keras-model").iterdir())
    assert downloaded == [LIST, "metrics.json", "model.keras"]


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_two_replicas_of_a_pytorch_script_end_with_one_model_on_record(reader: Reader) -> None:
    if not has_cpu_torch():
        pytest.skip("only the CUDA build of PyTorch, of more than 2 GB, is available here")
    (accuracy,) = re.findall(
        r"^metrics +val_accuracy (.+)$", reader.follow("Two replicas: PyTorch"), re.MULTILINE
    )
    assert float(accuracy) > 0.9


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_scikit_learn_model_becomes_champion_and_a_tuning_beats_it(reader: Reader) -> None:
    reader.follow("A champion: scikit-learn")
    reader.follow("A tuning that beats it")
    champion = json.loads(reader.run("trainmaster champions show digits -o json"))
    record = json.loads(reader.run("trainmaster status tuning.yaml -o json"))
    assert champion["current"]["run_id"] == record["run_id"]
    assert champion["current"]["trained_uri"] == record["model"]["uri"]


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S + 60)
def test_a_failed_run_says_why(reader: Reader) -> None:
    reader.follow("When it fails")


@pytest.mark.slow
def test_the_stack_stops_on_request(reader: Reader) -> None:
    reader.follow("Stop the stack")
    assert not (reader.folder / ".trainmaster" / "stack.env").exists()
