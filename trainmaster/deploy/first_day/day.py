"""The steps of a first day, each printed with its result, and the documents that it leaves."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trainmaster.client.context import Context
from trainmaster.deploy.first_day.answers import answers_of, answers_page
from trainmaster.deploy.first_day.stand_ins import NUMBER, PROJECT, StandIns
from trainmaster.resources import ROOT
from trainmaster.version import VERSION

TRAINMASTER = (sys.executable, "-m", "trainmaster")
SUMMARY = "first_day"
"""The document that marks a folder whose fixtures may be replaced."""
LINES_MAX = 3000
_NUMBER = re.compile(r"(?:its number is |projects/)(\d{6,20})\b")


class StepFailed(Exception):
    """A step found something else than it should; the message says what."""


class Day:
    """What the steps found so far, by the name of its document: as the services answered it."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.seen: dict[str, Any] = {}  # Any: JSON
        self.steps: list[dict[str, str]] = []

    @property
    def is_good(self) -> bool:
        return all(each["verdict"] == "ok" for each in self.steps)

    def step(self, name: str, take: Callable[[], str]) -> bool:
        """Take the step and print its result; whether it was good."""
        print(f"== {name}", flush=True)
        verdict, result = "stopped", ""
        try:
            result, verdict = take(), "ok"
        except Exception as error:  # a step that fails must not lose what the others find
            result, verdict = f"{type(error).__name__}: {error}", "FAILED"
        finally:
            self.steps.append({"step": name, "verdict": verdict, "result": result})
            print(f"{verdict:<8} {name}: {result}", flush=True)
        return verdict == "ok"

    def command(self, name: str, words: Sequence[str], *, timeout_s: float = 900.0) -> str:
        """Run the command, print its lines and keep the last ones; the last one of all.

        Raises:
            StepFailed: its status is not 0; it is -15 after `timeout_s`.
            OSError: it cannot be started.
        """
        lines: deque[str] = deque(maxlen=LINES_MAX)
        status: int | None = None
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        timer = threading.Timer(timeout_s, process.terminate)
        timer.start()
        with process:
            try:
                lines.extend(_shown(process.stdout))
            except KeyboardInterrupt:  # the command may not have had one
                process.send_signal(signal.SIGINT)
                lines.extend(_shown(process.stdout))
                raise
            finally:
                timer.cancel()
                status = process.wait()
                self.seen[name] = {"command": list(words), "status": status, "lines": list(lines)}
        last = lines[-1] if lines else ""
        if status != 0:
            raise StepFailed(f"status {status}: {last}")
        return last

    def trainmaster(self, name: str, *words: str, timeout_s: float = 900.0) -> str:
        """As `command`, for our own command in the day's context."""
        return self.command(name, (*TRAINMASTER, *words, "--context", self.context.name), timeout_s=timeout_s)

    def save(self, folder: Path) -> str:
        """Write every document with stand-ins for personal details, and the answers; what is there, in words."""
        stand_ins = StandIns(_known(self))
        seen = {name: stand_ins.replaced(found) for name, found in self.seen.items()}
        answers = answers_of(seen)
        where = "Google Cloud" if self.context.state is None else "the local stack"
        summary = {"trainmaster": VERSION, "where": where, "steps": stand_ins.replaced(self.steps)}
        for name, document in {**seen, "answers": answers, SUMMARY: summary}.items():
            text = json.dumps(document, indent=1, ensure_ascii=False)
            (folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")
        (folder / "answers.md").write_text(answers_page(answers, where), encoding="utf-8")
        left = ", ".join(name for name, answer in answers.items() if answer is None)
        return f"{len(seen)} documents and {folder / 'answers.md'}. Not answered: {left or 'nothing'}"


def _shown(lines: Any) -> Iterator[str]:  # Any: a text stream, or None
    for line in lines or ():
        print(line, end="", flush=True)
        yield line.rstrip("\n")


def _known(day: Day) -> dict[str, str]:
    """The personal details that no pattern finds, with their stand-ins."""
    known = {str(ROOT): "/checkout", str(Path.home()): "/home/me", day.context.project: PROJECT}
    if day.context.state is not None:
        known |= {str(day.context.state.absolute()): "/state", str(day.context.state.resolve()): "/state"}
    return {**known, **dict.fromkeys(_numbers(day), NUMBER)}


def _numbers(day: Day) -> set[str]:
    """The number of the project, by the doctor and by the names of jobs."""
    text = json.dumps(
        [day.seen.get("doctor"), [day.seen[name] for name in day.seen if name.endswith(".run")]]
    )
    return set(_NUMBER.findall(text))
