"""The recipes of docs/how-to/retraining.md do what the page says, with the events that it describes."""

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.retraining import RuleWorld
from tests.contract.world import MODELS, PROJECT, REGION, World, export_manifest
from tests.narrowing import present
from trainmaster.client.context import context_in_cloud
from trainmaster.client.submission.edits import NO_EDITS
from trainmaster.client.submission.examination import examination_of
from trainmaster.client.submission.source import pasted_source
from trainmaster.client.submission.terms import terms_with_policy
from trainmaster.orchestrator.core.retraining.signals import Signal, parse_image_push
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "retraining.md"
RECIPES = dict(re.findall(r"^## ([^\n]+)\n.*?```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL | re.MULTILINE))
DATA = "my-project-data"
CHURN = "us-central1-docker.pkg.dev/my-project/ml/churn"
TERMS = terms_with_policy(context_in_cloud(PROJECT, REGION))


def with_rule(title: str, at: datetime | None = None) -> RuleWorld:
    world = RuleWorld(TERMS.rules)
    if at is not None:
        world.clock.advance(at - world.clock.now())
    accepted = world.drop_rule(yaml.safe_load(RECIPES[title]))
    assert "was accepted" in accepted.message
    return world


def args_of(record: RunRecord) -> list[Any]:
    document: Any = present(record.request).document
    return list(document["args"])


def test_every_day_of_data_gets_its_run_and_knows_its_files() -> None:
    world = with_rule("One run for each day of data")
    days = ("dt=2026-11-22", "dt=2026-11-23", "dt=2026-11-24")
    for day in days:
        world.upload(f"sales/{day}/a.csv", day.encode(), bucket=DATA)
        world.wait(1)
        for other in (f"sales/{day}/_SUCCESS", f"sales/_delta_log/{day}.json", f"sales/{day}/a.csv.gstmp"):
            world.upload(other, b"{}", bucket=DATA)
    world.tick_after(1)
    for number in range(len(days)):
        world.tick_after(301)
        world.finish(number)
    runs = world.records()
    assert [args_of(run)[0] for run in runs] == [f"--data=gs://{DATA}/sales/{day}/" for day in days]
    for run, day in zip(runs, days, strict=True):
        name = args_of(run)[1].partition("gs://ledger/")[2]
        (line,) = world.objects.read("ledger", name, max_bytes=10_000).content.splitlines()
        assert json.loads(line)["uri"] == f"gs://{DATA}/sales/{day}/a.csv"


def pushed(world: RuleWorld, digit: str, tag: str) -> object:
    digest = f"{CHURN}@sha256:{digit * 64}"
    return parse_image_push(world.message({"action": "INSERT", "digest": digest, "tag": f"{CHURN}:{tag}"}))


def test_a_signature_a_cache_and_a_second_tag_leave_the_run_alone_and_the_next_image_replaces_it() -> None:
    world = with_rule("A new image, but not its signature")
    for digit, tag in (("1", "v1"), ("2", f"sha256-{'1' * 64}.sig"), ("3", "buildcache"), ("1", "v1.0")):
        signal = pushed(world, digit, tag)
        if isinstance(signal, Signal):
            world.signal(signal)
    (first,) = world.records()
    assert first.state is RunState.SUBMITTED
    world.wait(1)
    second = pushed(world, "4", "v2")
    assert isinstance(second, Signal)
    world.signal(second)
    first, replacing = world.records()
    assert world.jobs.read(present(first.job).name).state is JobState.CANCELLED
    assert present(replacing.request).document["image"] == f"{CHURN}@sha256:{'4' * 64}"


@pytest.mark.parametrize(("files", "runs"), [(999, 0), (1000, 1)])
def test_saturday_passes_without_enough_data_and_says_so(files: int, runs: int) -> None:
    friday = datetime(2027, 3, 5, 12, tzinfo=UTC)
    world = with_rule("On Saturday at three, if there is enough new data", friday)
    for number in range(files):
        world.upload(f"orders/{number}.csv", b"%d" % number, bucket=DATA)
    world.tick_after(3600)
    assert world.records() == []
    world.tick_after(14 * 3600)
    assert len(world.records()) == runs
    held = world.rule_status().get("held")
    assert (held or {}).get("reason", "") == (
        "" if runs else "Saturday 2027-03-06 03:00 was due, but 999 of 1,000 objects have arrived"
    )


def test_a_share_in_another_unit_and_a_worse_model_do_not_reign() -> None:
    world, title = World(TERMS.rules), "A champion that is really better"
    verdicts = []
    for number, value in enumerate((0.91, 91.3, 0.9101, 0.93)):
        incoming = world.drop_and_launch(RECIPES[title].encode(), f"requests/{number}.yaml")
        record = world.record(incoming.run_id)
        job = world.train(record)
        prefix = f"{record.output_uri}/model/".removeprefix(f"gs://{MODELS}/")
        manifest = {**export_manifest(f"gs://{MODELS}/{prefix}"), "metrics": {"val_accuracy": value}}
        world.objects.write(MODELS, f"{prefix}export.json", json.dumps(manifest).encode(), if_generation=None)
        world.complete(world.hint(job))
        verdict = present(present(world.record(incoming.run_id).completion).champion)
        verdicts.append((verdict.promoted, verdict.reason))
    assert [promoted for promoted, _ in verdicts] == [True, False, False, True]
    assert "unit" in verdicts[1][1]


def test_a_file_that_is_saved_three_times_and_put_away_starts_one_run() -> None:
    world, content = World(TERMS.rules), RECIPES["Saved three times, moved, and copied"].encode()
    for _ in range(3):
        world.drop_and_launch(content, "requests/house.yaml")
        world.clock.advance(timedelta(seconds=1))
    world.drop_and_launch(content, "requests/done/house.yaml")
    assert len(list(world.objects.listing("ledger", "runs/"))) == 1
    world.clock.advance(timedelta(minutes=1))
    world.drop_and_launch(content, "requests/house.yaml")
    world.drop_and_launch(content, "requests/house-of-tuesday.yaml")
    assert len(list(world.objects.listing("ledger", "runs/"))) == 3


def test_a_shells_variable_is_not_warned_of_and_without_the_shell_it_is() -> None:
    text = RECIPES["Text that another program should fill in"]
    told: dict[str, list[str]] = {}
    for name, given in (("shell", text), ("no shell", text.replace("[bash, -c]", "[python, train.py]"))):
        found = examination_of(pasted_source(given), TERMS, NO_EDITS)
        assert found.faults == ()
        told[name] = [str(warning) for warning in found.warnings]
    assert told["shell"] == []
    assert "$BUCKET looks like a template that was not filled in" in told["no shell"][0]
