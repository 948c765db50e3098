"""The log of a run on a terminal: lanes, and a bar for each replica."""

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.cli.screens import assert_screen
from tests.client.test_lanes import line as line_at
from trainmaster.cli.logs.lanes import LogPrinter
from trainmaster.client.logs.line import LogLine


def line(replica: str, payload: Any, severity: str = "INFO", trial_id: str | None = None) -> LogLine:
    return replace(line_at(1, payload, replica, trial_id), severity=severity)


def progress(step: int, replica: str = "chief-0") -> dict[str, Any]:
    numbers = {"epoch": 1, "epochs": 2, "step": step, "steps_per_epoch": 20, "loss": 1.5, "accuracy": 0.5}
    return {"event": "train_progress", "replica": replica, "message": f"step {step}", **numbers}


ERROR = {"attrs": {"tag": "workerpool1-0"}, "levelname": "ERROR", "message": "I0000 a library greets"}
LOG = [
    line("service", "Making the image's Python environment; it is kept for the next job."),
    line("service", "Not done here, from the Dockerfile: HEALTHCHECK CMD true", "WARNING"),
    line("service", "Job is running."),
    line("workerpool0-0", progress(5)),
    line("workerpool1-0", ERROR, "ERROR"),
    line("workerpool0-0", progress(10)),
    line("workerpool1-0", progress(10, "worker-0")),
    line("workerpool1-0", {"message": "peer lost", "event": "peer_lost"}, "ERROR"),
    line("workerpool0-0", "[bold]not markup[/bold] \x1b[2J"),
]


def shown(*lines: LogLine, width: int, following: bool = False) -> str:
    out = io.StringIO()
    lanes = LogPrinter(Console(file=out, force_terminal=True, width=width, height=24, color_system=None))
    lanes.show(lines)
    lanes.finish()
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_is_the_reviewed_one(width: int) -> None:
    assert_screen(f"logs.{width}", shown(*LOG, width=width))


def test_a_blank_line_of_a_traceback_prints_nothing() -> None:
    blank = {"attrs": {"tag": "workerpool0-0"}, "levelname": "ERROR", "message": ""}
    assert shown(line("workerpool0-0", blank, "ERROR"), width=80) == ""
    assert "| \n" in shown(line("workerpool0-0", ""), width=80), (
        "a blank line that the program printed is kept"
    )
    known = {**blank, "code": 7}
    assert '{"code": 7}' in shown(line("workerpool0-0", known, "ERROR"), width=80)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_of_a_progress_bar_only_its_last_version_is_printed(is_terminal: bool) -> None:
    first = "\x1b[1m 1/50\x1b[0m \x1b[37m━━━━\x1b[0m \x1b[1m13s\x1b[0m 271ms/step - loss: 0.7221"
    last = "\x1b[1m50/50\x1b[0m \x1b[32m━━━━\x1b[0m \x1b[1m0s\x1b[0m 3ms/step - loss: 0.6930"
    out = io.StringIO()
    lanes = LogPrinter(Console(file=out, force_terminal=is_terminal, width=120, color_system=None))
    lanes.show([line("workerpool0-0", f"{first}{70 * chr(8)}\r{last}   ")])
    assert out.getvalue() == "workerpool0-0 | 50/50 ━━━━ 0s 3ms/step - loss: 0.6930\n"


def test_replicas_have_different_colours_and_the_service_none() -> None:
    out = io.StringIO()
    lanes = LogPrinter(Console(file=out, force_terminal=True, width=80, color_system="standard"))
    lanes.show([line("workerpool0-0", "one"), line("workerpool1-0", "two"), line("workerpool0-0", "three")])
    colours = [text.partition("workerpool")[0] for text in out.getvalue().splitlines()]
    assert colours[0] == colours[2] != colours[1]


def test_what_a_program_calls_progress_without_its_numbers_is_printed_like_any_line() -> None:
    broken = {"event": "train_progress", "replica": "chief-0", "epoch": "one", "message": "half done"}
    assert shown(line("workerpool0-0", broken), width=80) == "workerpool0-0 | half done\n"


def test_below_the_log_the_bars_stand_above_what_the_run_is_doing() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=24, color_system=None)
    lanes = LogPrinter(console)
    lanes.say("flowers is running")
    lanes.show(LOG)
    drawn = ["".join(part.text for part in row) for row in console.render_lines(lanes.below())]
    assert "step 10/40" in drawn[0]
    assert "flowers is running" in drawn[-1]
