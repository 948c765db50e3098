"""Continuing a run, sweeps and weather: every command of the pages is run, and must print what they show."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .project import ROOT
from .reader import DEADLINE_S, Reader, sections, with_commands

PAGES = {
    name: ROOT / "docs" / "how-to" / f"{name}.md" for name in ("continue-a-run", "sweeps", "rehearse-a-week")
}


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(PAGES[request.param], tmp_path)
    try:
        yield reader
    finally:
        reader.stop()


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("reader", ["continue-a-run"], indirect=True)
def test_a_run_continues_from_the_checkpoints_of_another(reader: Reader) -> None:
    for title in with_commands(PAGES["continue-a-run"])[:-1]:
        reader.follow(title)
    done = json.loads(reader.run("trainmaster status latest -o json"))
    assert done["request"]["document"]["continue_from"].endswith("/checkpoints/")
    earlier = reader.run("trainmaster ls -o name").split()[1]
    assert earlier in done["request"]["document"]["continue_from"]
    reader.follow("Stop")


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("reader", ["sweeps"], indirect=True)
def test_the_runs_of_a_sweep_are_one_table(reader: Reader) -> None:
    reader.follow("Start")
    matrix = reader.follow("A matrix: all runs by one request").splitlines()
    heading = next(line for line in matrix if line.startswith("RUN"))
    assert heading.split()[-3:] == ["val_accuracy", "--learning_rate", "--epochs"]
    assert len(matrix[matrix.index(heading) + 1 :]) == 4
    reader.follow("Submit a run for each value")
    table = reader.follow("Compare them").splitlines()
    assert table[0].split()[-2:] == ["val_accuracy", "--learning_rate"]
    values = [float(line.split()[-2].rstrip("*")) for line in table[1:]]
    assert (len(values), values) == (3, sorted(values, reverse=True))
    reader.follow("End them all")


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("reader", ["rehearse-a-week"], indirect=True)
def test_a_run_gets_through_a_week_of_weather_with_its_fallback(reader: Reader) -> None:
    reader.follow("Start")
    (schedule,) = (
        text for kind, text in sections(PAGES["rehearse-a-week"])["Write the weather"] if kind == "yaml"
    )
    (reader.folder / "week.yaml").write_text(schedule)
    reader.follow("Write the weather")
    why = reader.follow("See what a request does")
    assert "exceed quota limits" in why
    assert "the job was given up: it had not started by" in why, why
    assert re.search(r"machines +us-central1, e2-standard-4", why)
    shown = reader.follow("Compare it with another day")
    injections = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])["injections"]
    assert all(one["struck"] for one in injections if one["name"] == "weather-1")
    assert shown.endswith("No weather plays.\n")
    reader.follow("Stop")
