"""One first day: its steps, each printed with its result, and the folder of what the services answered."""

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.first_day.stand_ins import NUMBER, PROJECT, StandIns
from trainmaster.client.context import Context
from trainmaster.deploy.doctor.questions import Questions
from trainmaster.resources import ROOT
from trainstack.find import environment_on


class StepFailed(Exception):
    """A step found something else than it should; the message says what."""


class FirstDay:
    """`results` has those of the steps so far, by name; `save` may begin once `know_details` has ended."""

    def __init__(self, context: Context, folder: Path) -> None:
        self.context, self.folder = context, folder
        self.results: dict[str, str] = {}
        self._stand_ins = StandIns({})

    @property
    def is_good(self) -> bool:
        return all(result.startswith("ok") for result in self.results.values())

    def take(self, name: str, act: Callable[[], object]) -> bool:
        """Take the step and print its result; whether it was good."""
        print(f"== {name}", flush=True)
        result = "stopped"
        try:
            result = f"ok {act() or ''}".strip()
        except Exception as error:  # a step that fails must not lose what the others find
            result = f"FAILED {type(error).__name__}: {error}"
        finally:
            self.results[name] = result
            print(f"{name}: {result}", flush=True)
        return result.startswith("ok")

    def know_details(self) -> None:
        """Find the details that no pattern finds; only a service knows the project's number."""
        state, project = self.context.state, self.context.project
        local = {} if state is None else environment_on(state)
        questions = Questions(
            project=project, iam=local.get("IAM_EMULATOR_HOST"), storage=self.context.storage_host
        )
        known = {str(ROOT): "/checkout", str(Path.home()): "/home/me", project: PROJECT}
        known[questions.project_number(project)] = NUMBER
        if state is not None:
            known |= dict.fromkeys((str(state.absolute()), str(state.resolve())), "/state")
        questions.close()
        self._stand_ins = StandIns(known)

    def save(self, name: str, value: Any) -> None:  # Any: JSON
        """Write the document, with stand-ins for personal details."""
        text = json.dumps(self._stand_ins.replaced(value), indent=1, ensure_ascii=False)
        (self.folder / f"{name}.json").write_text(f"{text}\n", encoding="utf-8")


def run_command(words: Sequence[str]) -> None:
    """Run the command in this terminal. After Ctrl-C, which it gets too, it ends first: it may hold a lock."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        process.wait()
    finally:
        status = process.wait()
    if status != 0:
        raise StepFailed(f"status {status}")
