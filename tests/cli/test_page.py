"""The page is whole in itself, and names are only ever text."""

from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from trainmaster.cli.study.page import page_of, write_study
from trainmaster.client.study.study import Choices, Study
from trainmaster.orchestrator.core.runs.job import TrialState

from .studies import START, many, study, trial

NOW = START + timedelta(minutes=5)
ATTACK = "</td><script>alert(1)</script><img src=x onerror=alert(1)>"
MODEL = "gs://models/horses/run/2/model/"


class Reader(HTMLParser):
    """The elements of a page, their attributes, and the cells of its table."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.rows: list[list[str]] = []
        self._in_cell = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self._in_cell = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in {"td", "th"}:
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def page(drawn: Study) -> str:
    return page_of(drawn, model_uri=MODEL, at=NOW)


def test_the_page_has_every_trial_and_the_models_path() -> None:
    bad = trial(3, state=TrialState.INFEASIBLE, curve=(), reason="out of memory")
    read = Reader(page(study(trial(1, final=0.7), trial(2, final=0.9), bad)))
    headings, *rows = read.rows
    assert headings[:4] == ["trial", "state", "learning_rate", "num_units"]
    assert [row[0] for row in rows] == ["1", "2", "3"]
    assert rows[1][1:5] == ["SUCCEEDED", "0.01", "128", "0.9"]
    assert rows[2][-1] == "out of memory"
    assert MODEL in page(study(trial(2, final=0.9)))


def test_a_name_or_value_cannot_become_markup() -> None:
    drawn = study(
        trial(1, final=0.5, parameters={ATTACK: ATTACK}),
        trial(2, state=TrialState.INFEASIBLE, curve=(), parameters={}, reason=ATTACK),
        parameters=(Choices(name=ATTACK, values=(ATTACK,)),),
        metric=ATTACK,
        title=ATTACK,
    )
    read = Reader(page_of(drawn, model_uri=ATTACK, at=NOW))
    assert not read.tags & {"script", "img", "iframe", "object", "embed", "link", "a"}
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert read.rows[1][2] == ATTACK
    assert read.rows[2][-1] == ATTACK


def test_the_page_loads_nothing() -> None:
    read = Reader(page(many(12)))
    links = [value for name, value in read.attributes if name.endswith(("href", "src"))]
    assert all(link.startswith("#") for link in links)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'; img-src data:") in read.attributes


@pytest.mark.parametrize("drawn", [study(), study(trial(1, curve=(0.5,))), many(12)])
def test_the_files_are_written_for_any_study(drawn: Study, tmp_path: Path) -> None:
    html, png = write_study(drawn, tmp_path / "new", model_uri=None, at=NOW)
    assert html.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert png.read_bytes().startswith(b"\x89PNG")
