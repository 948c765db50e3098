"""The table of trials fits its terminal, whatever the study."""

import io
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from trainmaster.cli.study.board import TrialBoard, choose, seconds
from trainmaster.client.study.study import Choices, Study, number, shown
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.runs.job import TrialState

from .studies import START, many, study, trial

NOW = START + timedelta(seconds=75)


def lines(drawn: Study, *, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    with console.capture() as captured:
        console.print(TrialBoard(study=drawn, at=NOW).table(width=width, height=height))
    return captured.get().splitlines()


def running(count: int, finished: int = 3) -> Study:
    ended = [trial(n, final=0.5 + n / 100) for n in range(1, finished + 1)]
    active = [
        trial(n, state=TrialState.ACTIVE, curve=(0.3,)) for n in range(finished + 1, finished + count + 1)
    ]
    return study(*ended, *active)


@pytest.mark.parametrize("drawn", [study(), many(1), many(500), running(400)])
@pytest.mark.parametrize(("width", "height"), [(76, 6), (76, 20), (200, 40)])
def test_no_study_overflows_the_terminal(drawn: Study, width: int, height: int) -> None:
    printed = lines(drawn, width=width, height=height)
    assert len(printed) <= height
    assert max(map(len, printed)) <= width


def test_what_is_left_out_is_counted() -> None:
    *_, last = lines(many(500), width=120, height=12)
    assert last.strip() == "490 more trials: 440 succeeded, 50 infeasible"


def test_running_trials_and_the_best_are_shown_first() -> None:
    chosen, left_out = choose(running(2, finished=40), most=4)
    assert [each.id for each in chosen] == ["39", "40", "41", "42"]
    assert len(left_out) == 38


def test_the_best_stays_in_sight_when_more_run_than_there_are_lines() -> None:
    chosen, _ = choose(running(10), most=3)
    assert [each.id for each in chosen] == ["3", "4", "5"]


@given(st.integers(0, 30), st.integers(0, 30), st.integers(1, 40))
def test_every_trial_is_either_shown_or_counted(active: int, finished: int, most: int) -> None:
    drawn = running(active, finished)
    chosen, left_out = choose(drawn, most=most)
    assert len(chosen) == min(most, len(drawn.trials))
    assert {each.id for each in (*chosen, *left_out)} == {each.id for each in drawn.trials}


def test_a_row_says_how_far_a_trial_is_and_how_long_it_has_run() -> None:
    drawn = study(trial(1, state=TrialState.ACTIVE, curve=(0.3, 0.6, 0.5)))
    board = TrialBoard(study=drawn, at=NOW, progress={"1": "epoch 3/10"})
    console = Console(file=io.StringIO(), width=120, color_system=None)
    with console.capture() as captured:
        console.print(board.table(width=120, height=9))
    row = captured.get().splitlines()[1].split()
    assert row == ["1", "ACTIVE", "0.01", "128", "epoch", "3/10", "0.5", "0.6", "75", "s"]


def test_a_static_terminal_shows_each_start_and_each_end() -> None:
    bad = trial(2, state=TrialState.INFEASIBLE, curve=(), reason="out of memory")
    waiting = trial(4, state=TrialState.REQUESTED, curve=())
    drawn = study(trial(1, final=0.7), bad, trial(3, state=TrialState.ACTIVE, curve=()), waiting)
    said = dict(TrialBoard(study=drawn, at=NOW).news())
    assert said["start 1"] == "trial 1 started  learning_rate=0.01 num_units=128"
    assert said["end 1"] == "trial 1 succeeded after 30 s  accuracy 0.7"
    assert said["end 2"] == "trial 2 infeasible after 30 s: out of memory"
    assert "end 3" not in said


@pytest.mark.parametrize("width", [50, 60, 80, 200])
def test_a_narrow_terminal_loses_columns_and_never_digits(width: int) -> None:
    text = "\n".join(lines(many(6), width=width, height=12))
    assert "…" not in text
    assert all(f"{number / 7:.4f}" in text for number in range(1, 7))
    assert ("elapsed" in text) is (width >= 80)


def test_markup_in_a_value_is_only_text() -> None:
    word = "[bold]x[/bold]"
    drawn = study(
        trial(1, final=0.5, parameters={"optimizer": word}),
        parameters=(Choices(name="optimizer", values=(word,)),),
    )
    assert word in "".join(lines(drawn, width=120, height=9))


@pytest.mark.parametrize(
    ("value", "text"),
    [(128.0, "128"), (0.00025581, "0.0002558"), (1e-7, "1e-7"), (2.5e9, "2.5e9"), (0.0, "0"), (-3.0, "-3")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number(value) == text


def test_words_stay_on_one_line() -> None:
    assert shown(None) == ""
    assert one_line("a\nb\x1b[2Jc") == "a b [2Jc"


def test_long_runs_are_shown_in_minutes_and_hours() -> None:
    assert [seconds(timedelta(seconds=s)) for s in (5, 119, 125, 7325)] == [
        "5 s",
        "119 s",
        "2:05 min",
        "2:02 h",
    ]
