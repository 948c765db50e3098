"""Every command of the README is run here or in a test named here."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.processes import run_to_end
from trainmaster.cli.demo.plays import BURST_FILES

ROOT = Path(__file__).resolve().parents[2]
DEMO_DEADLINE_S = 900

RUN_BY = {
    "make demo": "test_make_demo_ends_with_a_model_that_answers",
    "make demo-tuning": "test_make_demo_tuning_ends_with_the_best_trials_model_and_a_page",
    "make demo-retrain": "test_make_demo_retrain_promotes_the_model_of_good_data_and_not_that_of_bad",
    # What these call is run with scripts in the place of gcloud and terraform, and against the local stack.
    "make deploy PROJECT=my-project REGION=us-central1": "tests/deploy/test_terraform_deploy.py",
    "make undeploy PROJECT=my-project REGION=us-central1": "tests/deploy/test_terraform_deploy.py",
    "make doctor PROJECT=my-project REGION=us-central1": "tests/e2e/test_doctor.py",
}
"""Each command of the README but those of the quickstart, and the test that runs it."""


def commands(page: str) -> set[str]:
    """Each command in a page's shell blocks, without its comment."""
    blocks = re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n  ", "").splitlines()]
    return {re.sub(r" +# .*", "", line) for line in lines if line.strip()}


def test_the_readme_has_no_command_that_no_test_runs() -> None:
    # tests/e2e/test_quickstart.py runs every command of that page.
    assert commands("README.md") - commands("docs/tutorials/quickstart.md") == RUN_BY.keys()


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)`", (ROOT / "README.md").read_text()))
    assert named
    assert named <= targets


def test_the_readmes_code_for_plain_files_makes_the_folder_to_write_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    monkeypatch.setenv("AIP_MODEL_DIR", "gs://models/first/run/model/")
    exec(code.replace("/gcs/", f"{tmp_path}/"), {"os": os})
    assert (tmp_path / "models/first/run/model").is_dir()


def made(target: str) -> "subprocess.CompletedProcess[str]":
    """The output of a demo that has ended well."""
    done = run_to_end(["make", target], cwd=ROOT, timeout=DEMO_DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.mark.slow(seconds=180)
@pytest.mark.timeout(DEMO_DEADLINE_S + 30)
def test_make_demo_ends_with_a_model_that_answers() -> None:
    done = made("demo")
    assert "Record closed  succeeded" in done.stdout
    assert "Every size and checksum matches the record." in done.stderr
    right, asked = map(int, re.findall(r"(\d+) of (\d+) test images classified correctly", done.stdout)[0])
    assert right > asked / 2  # five classes: guessing would name one in five
    records = (ROOT / ".trainmaster/demo/storage/buckets/trainmaster-local-ledger/runs").glob("*.json")
    (record,) = [json.loads(path.read_text()) for path in records]
    assert record["state"] == "succeeded"


@pytest.mark.slow
@pytest.mark.timeout(DEMO_DEADLINE_S + 30)
def test_make_demo_tuning_ends_with_the_best_trials_model_and_a_page() -> None:
    done = made("demo-tuning")
    ended = re.findall(r"trial (\d) succeeded after", done.stdout)
    assert sorted(ended) == ["1", "2", "3", "4", "5", "6"]
    assert "Every size and checksum matches the record." in done.stderr
    state = ROOT / ".trainmaster/demo-tuning"
    records = (state / "storage/buckets/trainmaster-local-ledger/runs").glob("*.json")
    (record,) = [json.loads(path.read_text()) for path in records]
    assert record["state"] == "succeeded"
    values = {
        trial["id"]: trial["measurement"]["metrics"]["accuracy"] for trial in record["tuning"]["trials"]
    }
    assert (
        record["tuning"]["best_trial"]["value"]
        == max(values.values())
        == values[record["tuning"]["best_trial"]["id"]]
    )
    assert record["tuning"]["best_trial"]["model_uri"] in done.stdout
    assert record["tuning"]["best_trial"]["model_uri"] in (state / "study.html").read_text()


@pytest.mark.slow
@pytest.mark.timeout(DEMO_DEADLINE_S + 30)
def test_make_demo_retrain_promotes_the_model_of_good_data_and_not_that_of_bad() -> None:
    done = made("demo-retrain")
    retrained = done.stdout + done.stderr  # the commands say on standard error what they have done
    assert "2 bursts of 200 files started 2 runs: exactly one each" in retrained
    ledger = ROOT / ".trainmaster/demo-retrain/storage/buckets/trainmaster-local-ledger"
    records = [json.loads(path.read_text()) for path in (ledger / "runs").glob("*.json")]
    by_firing = {record["source"].get("firing", 0): record for record in records}
    assert sorted(by_firing) == [0, 1, 2]
    assert len(records) == len(by_firing)
    assert {record["state"] for record in records} == {"succeeded"}
    champion = json.loads((ledger / "champions/horses-retrain.json").read_text())
    assert [verdict["promoted"] for verdict in champion["considered"]] == [True, True, False]
    assert champion["current"]["run_id"] == by_firing[1]["run_id"]
    files = [by_firing[number]["request"]["document"]["labels"]["files"] for number in (1, 2)]
    assert files == [str(BURST_FILES)] * 2
    value = {firing: record["model"]["metrics"]["val_accuracy"] for firing, record in by_firing.items()}
    assert value[1] > value[0] + 0.05
    assert value[2] < value[1]
    assert retrained.count("Its model was promoted to champion: ") == 2
