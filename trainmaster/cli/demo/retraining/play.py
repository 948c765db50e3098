"""`make demo-retrain`: new data trains a better model, which becomes champion; bad data's model does not."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from trainmaster.cli.demo.retraining.data import upload, write_bursts
from trainmaster.cli.demo.retraining.report import missing_notices, report
from trainmaster.cli.demo.retraining.view import doing, news, picture
from trainmaster.cli.demo.retraining.watch import RULE_OBJECT, RetrainSighting, RetrainWatch, notices_of
from trainmaster.cli.demo.stage import (
    DemoFailed,
    delivered,
    drop,
    look_until,
    on_fresh_stack,
    show_document,
)
from trainmaster.cli.watch.live import View
from trainmaster.client.context import context_of_stack
from trainmaster.orchestrator.core.runs.states import ENDS
from trainmaster.resources import ROOT

RULE = ROOT / "examples" / "demo_rule.yaml"
REQUEST = ROOT / "examples" / "demo_retrain.yaml"
TICK_S = 2  # the cloud's tick comes once a minute


def run(state: Path, *, as_json: bool) -> int:
    """The exit status of the whole demo on an emptied `state`: 0 if everything it shows holds, else 1."""
    return on_fresh_stack(state, _play, "--tick-s", str(TICK_S), as_json=as_json)


def _play(console: Console, environment: Mapping[str, str], state: Path) -> tuple[int, Any]:
    target, data_bucket = context_of_stack(environment), environment["TRAINMASTER_DATA_BUCKET"]
    bursts = write_bursts(console, state / "data")
    with notices_of(target, environment["PUBSUB_EMULATOR_HOST"]) as notices:
        # The first champion's data is where its request looks for it: in a bucket that no rule watches.
        delivered(console, target, bursts[0])
        request = REQUEST.read_text()
        show_document(console, "The rule", RULE.read_text())
        show_document(console, "The first champion's request", request)
        dropped = drop(target, f"requests/{REQUEST.name}", request)
        watch = RetrainWatch(target, data_bucket, notices, dropped.at)
        stage = _Stage(watch=watch, view=View(console, picture=picture, news=news, doing=doing))
        with stage.view.running("the services are read"):
            stage.until(lambda seen: len(seen.verdicts) == 1, "there is a champion")
            rule = drop(target, RULE_OBJECT, RULE.read_text())
            stage.until(lambda seen: seen.rule_generation == rule.generation, "the rule is answered")
            for number, folder in enumerate(bursts, start=1):
                stage.deliver(number, partial(upload, target, data_bucket, number, folder))
            seen = stage.until(
                lambda seen: seen.is_idle and not list(missing_notices(seen)), "every notice has arrived"
            )
    status = report(console, seen, target=target, state=state, rule_generation=rule.generation)
    return status, {"runs": list(seen.runs), "champion": seen.champion}


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Show progress until the awaited state is reached."""

    watch: RetrainWatch
    view: View[RetrainSighting]

    def until(self, has_come: Callable[[RetrainSighting], bool], what: str) -> RetrainSighting:
        """The first sighting that `has_come` takes.

        Raises:
            DemoFailed: a run or the rule failed, or it had not come after DEADLINE_S seconds.
        """
        return look_until(self.view, self.watch.look, lambda seen: _is_well(seen) and has_come(seen), what)

    def deliver(self, number: int, upload_all: Callable[[], None]) -> None:
        """Look on while a burst is uploaded, and until there is a verdict on the model that it trained.

        Raises:
            DemoFailed: see `until`.
        """
        self.watch.bursts = number
        with ThreadPoolExecutor(1) as pool:
            uploaded = pool.submit(upload_all)
            self.until(lambda _: uploaded.done(), f"burst {number} is uploaded")
            uploaded.result()
        self.until(
            lambda seen: len(seen.verdicts) > number and seen.is_idle,
            f"a verdict on what burst {number} trained",
        )


def _is_well(seen: RetrainSighting) -> bool:
    """True.

    Raises:
        DemoFailed: a run has ended without success, or the rule is not in force.
    """
    for record in seen.runs:
        if record["state"] in ENDS and record["state"] != "succeeded":
            raise DemoFailed(
                f"{record['run_id']} ended {record['state']}: {record.get('failure')} {record['problems']}"
            )
    if seen.status and seen.status["state"] != "accepted":
        raise DemoFailed(f"The rule is not active: {dict(seen.status)}")
    return True
