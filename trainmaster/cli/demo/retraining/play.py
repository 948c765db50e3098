"""`make demo-retrain`: new data trains a better model, which becomes champion; bad data's model does not."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from string import Template

from rich.console import Console

from trainmaster.cli.demo.retraining.data import BURSTS, DATASET, FIRST, uploaded
from trainmaster.cli.demo.retraining.notices import listening
from trainmaster.cli.demo.retraining.report import report, unheard
from trainmaster.cli.demo.retraining.view import view
from trainmaster.cli.demo.retraining.watch import RULE_OBJECT, Delivery, RetrainSighting, RetrainWatch
from trainmaster.cli.demo.stage import (
    DEADLINE_S,
    POLL_S,
    DemoFailed,
    Dropped,
    delivered,
    drop,
    on_fresh_stack,
    show_document,
    write_dataset,
)
from trainmaster.cli.demo.view import View
from trainmaster.client.clients import Target, target_from
from trainmaster.orchestrator.core.runs.states import ENDS
from trainmaster.resources import ROOT

RULE = ROOT / "examples" / "demo_rule.yaml"
REQUEST = ROOT / "examples" / "demo_retrain.yaml"
TICK_S = 2  # the cloud's tick comes once a minute


def run(state: Path) -> int:
    """The exit status of the whole demo on an emptied `state`: 0 if everything it shows holds, else 1."""
    return on_fresh_stack(state, _whole_way, "--tick-s", str(TICK_S))


def _whole_way(console: Console, environment: Mapping[str, str], state: Path) -> int:
    target = target_from(environment)
    with ThreadPoolExecutor(len(BURSTS) + 1) as pool:
        folders = [
            pool.submit(write_dataset, state / "data" / str(number), DATASET, *options)
            for number, options in enumerate((FIRST, *BURSTS))
        ]
    first, *bursts = (folder.result() for folder in folders)
    with listening(target, environment["PUBSUB_EMULATOR_HOST"]) as heard:
        dropped = _drop_request(console, target, first)
        watch = RetrainWatch(target, heard, dropped.at)
        stage = _Stage(watch=watch, view=view(console))
        with stage.view.running():
            stage.until(lambda seen: len(seen.verdicts) == 1, "there is a champion")
            rule = drop(target, RULE_OBJECT, filled(RULE, target))
            stage.until(
                lambda seen: int(seen.status.get("generation", 0)) == rule.generation, "the rule is answered"
            )
            for number, folder in enumerate(bursts, start=1):
                stage.deliver(target, environment["TRAINMASTER_DATA_BUCKET"], number, folder)
            seen = stage.until(
                lambda seen: seen.is_settled and not list(unheard(seen)), "every notice has come"
            )
    return report(console, seen, target=target, state=state, rule_generation=rule.generation)


@dataclass(frozen=True, kw_only=True)
class _Stage:
    """Looks on and shows what is seen, until what is waited for has come."""

    watch: RetrainWatch
    view: View[RetrainSighting]

    def until(self, has_come: Callable[[RetrainSighting], bool], what: str) -> RetrainSighting:
        """The first sighting that `has_come` takes.

        Raises:
            DemoFailed: a run or the rule failed, or it had not come after DEADLINE_S seconds.
        """
        deadline = time.monotonic() + DEADLINE_S
        while True:
            seen = self.watch.look()
            self.view.show(seen)
            _raise_failures(seen)
            if has_come(seen):
                return seen
            if time.monotonic() > deadline:
                raise DemoFailed(
                    f"Not within {DEADLINE_S} s: {what}. The rule says {seen.status}, its state is {seen.rule}."
                )
            time.sleep(POLL_S)

    def deliver(self, target: Target, bucket: str, number: int, folder: Path) -> None:
        """Upload a burst, and look on until there is a verdict on the model that it trained.

        Raises:
            DemoFailed: see `until`.
        """
        deliveries = self.watch.deliveries
        deliveries.append(Delivery())

        def told(arrived: int) -> None:
            deliveries[number - 1] = Delivery(arrived=arrived)

        with ThreadPoolExecutor(1) as pool:
            burst = pool.submit(uploaded, target, bucket, f"horses/burst-{number}/", folder, told)
            self.until(lambda _: burst.done(), f"burst {number} is uploaded")
        deliveries[number - 1] = Delivery(arrived=burst.result().files, burst=burst.result())
        self.until(
            lambda seen: len(seen.verdicts) > number and seen.is_settled,
            f"a verdict on what burst {number} trained",
        )


def _raise_failures(seen: RetrainSighting) -> None:
    """Go on only while all is well.

    Raises:
        DemoFailed: a run has ended without success, or the rule is not in force.
    """
    for record in seen.runs:
        if record["state"] in ENDS and record["state"] != "succeeded":
            raise DemoFailed(
                f"{record['run_id']} ended {record['state']}: {record.get('failure')} {record['problems']}"
            )
    if seen.status and seen.status["state"] != "accepted":
        raise DemoFailed(f"The rule is not in force: {dict(seen.status)}")


def _drop_request(console: Console, target: Target, data: Path) -> Dropped:
    """The first champion's request in the inbox, and its data where it looks for it: a bucket that no rule watches."""
    request = filled(REQUEST, target, data_dir=delivered(target, data))
    show_document(console, "The rule", filled(RULE, target))
    show_document(console, "The first champion's request", request)
    return drop(target, f"requests/{REQUEST.name}", request)


def filled(template: Path, target: Target, **more: str) -> str:
    """The template's text; names that are not given here, as a rule's own, stay as they are."""
    return Template(template.read_text()).safe_substitute(
        project=target.project, region=target.region, **more
    )
