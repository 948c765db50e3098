"""How-to pages, and the tutorial that joins three of them: every command is run, and must print what they show."""

import json
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client
from jsonschema import Draft202012Validator

from tests.stack.waiting import wait_until
from trainstack.find import read_stack_env

from .project import ROOT
from .reader import DEADLINE_S, Reader, sections, with_commands

# A stack for each page, one after the other.
pytestmark = [pytest.mark.slow(seconds=150), pytest.mark.timeout(DEADLINE_S)]
PAGES = {
    name: ROOT / "docs" / "how-to" / f"{name}.md"
    for name in (
        "continue-a-run",
        "sweeps",
        "rehearse-a-week",
        "register-champions",
        "evaluate-independently",
        "keep-and-clean",
        "see-what-machines-do",
    )
} | {"served-model": ROOT / "docs" / "tutorials" / "served-model.md"}


@pytest.fixture
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(PAGES[request.param], tmp_path)
    try:
        yield reader
    finally:
        reader.stop()


@pytest.mark.parametrize("reader", ["continue-a-run"], indirect=True)
def test_a_run_continues_from_the_checkpoints_of_another(reader: Reader) -> None:
    for title in with_commands(PAGES["continue-a-run"])[:-1]:
        reader.follow(title)
    done = json.loads(reader.run("trainmaster status latest -o json"))
    assert done["request"]["document"]["continue_from"].endswith("/checkpoints/")
    earlier = reader.run("trainmaster ls -o name").split()[1]
    assert earlier in done["request"]["document"]["continue_from"]
    reader.follow("Stop")


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


@pytest.mark.parametrize("reader", ["evaluate-independently"], indirect=True)
def test_a_run_that_claims_to_be_perfect_stays_a_challenger_until_it_is_better_and_approved(
    reader: Reader,
) -> None:
    for title in with_commands(PAGES["evaluate-independently"]):
        if title == "Stop":
            champion = json.loads(reader.run("trainmaster champions show slope -o json"))
            assert [reign["value"] for reign in champion["history"]] == pytest.approx([0.2, 0.0])
            assert champion["current"]["approved_by"]["name"]
        reader.follow(title)


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
    assert "moved to the next candidate: it had not started by" in why, why
    assert re.search(r"machines +us-central1, e2-standard-4", why)
    shown = reader.follow("Compare it with another day")
    injections = json.loads(shown[shown.index("{") : shown.rindex("}") + 1])["injections"]
    assert all(one["struck"] for one in injections if one["name"] == "weather-1")
    assert shown.endswith("No weather plays.\n")
    reader.follow("Stop")


@pytest.mark.parametrize("reader", ["keep-and-clean"], indirect=True)
def test_what_lost_is_removed_first_its_model_then_its_record(reader: Reader) -> None:
    reader.follow("Start")
    newer, older, champion = reader.run("trainmaster ls -o name").split()
    plan = reader.follow("Look first")
    assert re.search(r"^MODEL +RUNS +CHECKPOINTS +MODELS +OBJECTS +SIZE$", plan, re.MULTILINE), plan
    planned, _ = json.loads(reader.run("trainmaster clean --plan -o json"))["runs"]
    assert (planned["run_id"], planned["parts"]) == (older, ["models"])
    outputs = reader.folder / ".trainmaster/storage/buckets/trainmaster-local-models"
    reader.follow("Remove")
    wait_until(lambda: not list(outputs.glob(f"*/{older}/**/*.*")))
    assert all(list(outputs.glob(f"*/{run_id}/model/*")) for run_id in (newer, champion))
    wait_until(lambda: "removed" in reader.run(f"trainmaster status {older}"))
    assert "has removed what" in reader.run(f"trainmaster download {older}", fails=True)
    age_rows(reader, older, champion)
    reader.run("trainmaster clean --yes")
    wait_until(lambda: reader.run("trainmaster ls -o name").split() == [newer, champion])
    wait_until(lambda: "runs at" in reader.run(f"trainmaster status {older}"))
    assert "has removed the record" in reader.run(f"trainmaster again {older}", fails=True)
    reader.follow("Stop")


@pytest.mark.slow
@pytest.mark.timeout(DEADLINE_S)
@pytest.mark.parametrize("reader", ["served-model"], indirect=True)
def test_a_champion_is_scored_tried_out_registered_and_reported_in_slack(reader: Reader) -> None:
    titles = with_commands(PAGES["served-model"])
    reader.follow(titles[0])
    for number, title in enumerate(titles[1:3]):
        reader.follow(title)
        # The third run, which the second section trains, loses.
        winner = reader.run("trainmaster ls -o name").split()[number]
        wait_until(partial(has_alias, reader, "line", winner), "the alias moves", within_s=120)
    worse, second, first = reader.run("trainmaster ls -o name").split()
    if shutil.which("gcloud"):
        assert f"trainmaster_run_id: {second}" in reader.follow("See the version and its alias")
    assert "registration" not in json.loads(reader.run(f"trainmaster status {worse} -o json"))["completion"]
    known = json.loads(reader.run(f"trainmaster status {second} -o json"))["completion"]
    assert known["smoke"]["scores"] == {"model": {"predictions": 2}}
    assert known["registration"]["smoke"] == "passed"
    listed = reader.follow("Read what Slack shows")
    assert f"line: {second} is the new champion, error 0.04156 (champion 0.5335)" in listed
    assert listed.count("delivered") == 3
    for title in titles[5:]:
        reader.follow(title)
    assert first in reader.printed[-2]
    served, returned = (re.findall(r"line@(\d) .* (\d+) %  +(\d+) % ", reader.printed[n]) for n in (-3, -2))
    assert served[1:] == [("2", "0", "100"), ("2", "100", "100")]
    assert returned[-2:] == [("2", "0", "100"), ("1", "100", "0")]


def has_alias(reader: Reader, model_name: str, run_id: str) -> bool:
    """Whether the run is champion, and a version of it has the alias: any, since a crash may leave two of one run."""
    ledger = reader.folder / ".trainmaster/storage/buckets/trainmaster-local-ledger"
    path = ledger / "champions" / f"{model_name}.json"
    champion = json.loads(path.read_text()) if path.exists() else {}
    found = [(champion.get(key) or {}).get("run_id") for key in ("current", "registered")]
    return found == [run_id, run_id]


def age_rows(reader: Reader, *run_ids: str) -> None:
    """Let the runs have ended long ago: no test can wait a month."""
    stack = read_stack_env((reader.folder / ".trainmaster/stack.env").read_text())
    options = {"api_endpoint": stack["STORAGE_EMULATOR_HOST"]}
    client = Client(project="p", credentials=AnonymousCredentials(), client_options=options)
    for blob in client.list_blobs(stack["TRAINMASTER_LEDGER_BUCKET"], prefix="index/"):
        if blob.name.endswith(run_ids):
            blob.metadata = {**blob.metadata, "ended_at": "2026-01-01T00:00:00Z"}
            blob.patch()


@pytest.mark.parametrize("reader", ["see-what-machines-do"], indirect=True)
def test_what_a_runs_machines_did_is_explained_and_the_policy_of_the_page_is_valid(reader: Reader) -> None:
    page = PAGES["see-what-machines-do"]
    ((_, policy),) = (block for block in sections(page)["Find jobs that idle or hang"] if block[0] == "yaml")
    schema = json.loads((ROOT / "schemas/policy.v1.schema.json").read_text())["properties"]["waste"]
    Draft202012Validator(schema).validate(yaml.safe_load(policy)["waste"])
    reader.follow("Start")
    while '"utilization"' not in reader.run("trainmaster status latest -o json"):
        pass
    assert re.search(r"use +workerpool0-0  CPU \d+ % \(up to \d+ %\)", reader.follow("After a run"))
    reader.follow("Stop")


@pytest.fixture(scope="module")
def registered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """The page's stack once its two champions are in the registry."""
    reader = Reader(PAGES["register-champions"], tmp_path_factory.mktemp("registered"))
    try:
        for title in ("Start", "Ask for it in the policy", "Train two champions"):
            reader.follow(title)
        newest = reader.run("trainmaster ls -o name").split()[0]
        wait_until(partial(has_alias, reader, "starter", newest), "both are registered", within_s=120)
        yield reader
    finally:
        reader.stop()


def test_the_alias_in_the_model_registry_follows_the_champion_for_the_sdk(registered: Reader) -> None:
    registered.follow("See the version")
    second, first = registered.run("trainmaster ls -o name").split()
    ((_, program),) = (
        block for block in sections(PAGES["register-champions"])["See the version"] if block[0] == "python"
    )
    runs = "for version in aiplatform.models.ModelRegistry('starter').list_versions():\n"
    runs += "    print('version', version.version_id, version.version_description.split('\\n')[0])\n"
    (registered.folder / "champion.py").write_text(f"{program}{runs}")
    registered.follow("Roll back")
    seen = registered.run('eval "$(trainmaster stack env --gateway)" && python champion.py')
    aliases = dict(re.findall(r"^(\d+) \[(.*)\]$", seen, re.MULTILINE))
    of_runs = dict(re.findall(r"^version (\d+) run: (\S+)$", seen, re.MULTILINE))
    assert aliases.keys() == of_runs.keys() >= {"1", "2"}, seen
    assert set(of_runs.values()) == {first, second}
    assert [number for number in aliases if "'champion'" in aliases[number]] == ["1"], seen
    assert (of_runs["1"], f"1 {first}\n" in seen) == (first, True)
    assert f"run: {first}\nfiles: gs://trainmaster-local-champions/starter/{first}/\n" in seen


@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed")
def test_gcloud_shows_the_versions_and_which_has_the_alias(registered: Reader) -> None:
    listed = registered.follow("See it with gcloud").splitlines()
    assert {line.split()[1] for line in listed if line.startswith("starter ")} >= {"1", "2"}
    shown = registered.run("trainmaster champions show starter")
    (current,) = re.findall(r"version (\d+), alias champion", shown)
    describe = (
        f"gcloud ai models describe starter@{current} --region=us-central1 --format='value(versionAliases)'"
    )
    assert "champion" in registered.run(f'eval "$(trainmaster stack env)" && {describe}')
