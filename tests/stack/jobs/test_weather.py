"""What injections do to jobs of a region and machine, one by one and by a schedule of weather."""

import contextlib
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from google.api_core.exceptions import TooManyRequests

from tests.ready_stack import announce
from tests.stack.injections.conftest import account, ask
from trainmaster.cli.command import main
from trainstack.errors import InvalidArgumentError
from trainstack.injections.active import JOB_KINDS
from trainstack.jobs.weather import MAX_ENTRIES, schedule_from

from .conftest import Stack, container
from .studies import ended, study

L4 = {"machine_type": "g2-standard-4", "accelerator_type": "NVIDIA_L4", "accelerator_count": 1}
PATH = "/emulator/v1/injections"
ROOT = Path(__file__).parents[3]


def inject(stack: Stack, kind: str, match: str = "us-central1/*", **more: object) -> None:
    ask(stack.url, {"name": "f1", "at": "vertex.jobs", "kind": kind, "match": match, **more})


def release(stack: Stack) -> None:
    assert httpx.delete(f"{stack.url}{PATH}/f1", timeout=60).status_code == 200


def weather(stack: Stack, method: str = "GET", document: object = None) -> Any:
    answer = httpx.request(method, f"{stack.url}/emulator/v1/weather", json=document, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def state(stack: Stack, name: str) -> str:
    return str(stack.jobs.get_custom_job(name=name).state.name)


def passed(stack: Stack, name: str) -> bool:
    return bool(stack.ended(name).state.name == "JOB_STATE_SUCCEEDED")


@pytest.mark.parametrize("kind", ["hold_queued", "hold_pending"])
def test_held_jobs_wait_without_a_machine_until_the_injection_is_removed(
    start: Callable[..., Any], kind: str
) -> None:
    with start(capacity=1) as stack:
        inject(stack, kind, "us-central1/NVIDIA_L4", times=1)
        held = stack.submit({**container("print=x"), "machine_spec": L4})
        for _ in range(2):  # they have the only slot, one after the other
            assert passed(stack, stack.submit(container("print=x")).name)
        assert account(stack.url, "f1")["on"] == [f"vertex.jobs {held.name}"]
        assert state(stack, held.name) == "JOB_STATE_" + kind.removeprefix("hold_").upper()
        assert passed(stack, stack.submit({**container("print=x"), "machine_spec": L4}).name)  # one too many
        release(stack)
        assert passed(stack, held.name)


@pytest.mark.parametrize("kind", ["hold_queued", "hold_pending"])
def test_a_held_job_can_be_cancelled_without_having_started(stack: Stack, kind: str) -> None:
    inject(stack, kind)
    held = stack.submit(container("print=x"))
    stack.until(held.name, lambda _job: account(stack.url, "f1")["struck"])
    stack.jobs.cancel_custom_job(name=held.name)
    job = stack.ended(held.name)
    assert (job.state.name, job.error.code, bool(job.start_time)) == ("JOB_STATE_CANCELLED", 1, False)


def test_a_job_may_start_while_it_is_being_cancelled_and_be_cancelled_then(stack: Stack) -> None:
    inject(stack, "hold_pending")
    (stack.buckets / "b").mkdir()
    held = stack.submit(container("wait=b/go"))
    ask(stack.url, {"name": "race", "at": "vertex.jobs", "kind": "start_while_cancelled", "times": 1})
    stack.jobs.cancel_custom_job(name=held.name)
    stack.until(held.name, lambda job: job.state.name == "JOB_STATE_RUNNING")
    stack.jobs.cancel_custom_job(name=held.name)
    job = stack.ended(held.name)
    assert (job.state.name, bool(job.start_time)) == ("JOB_STATE_CANCELLED", True)
    assert account(stack.url, "race")["struck"] == 1


def test_a_cancellation_takes_its_time_and_leaves_its_machine_to_others(start: Callable[..., Any]) -> None:
    with start(capacity=1) as stack:
        inject(stack, "hold_pending", "*/g2-*/standard")
        held = stack.submit({**container("print=x"), "machine_spec": L4})
        ask(stack.url, {"name": "slow", "at": "vertex.jobs", "kind": "slow_cancel", "seconds": 600})
        stack.jobs.cancel_custom_job(name=held.name)
        assert passed(stack, stack.submit(container("print=x")).name)
        assert state(stack, held.name) == "JOB_STATE_CANCELLING"
    with start(capacity=1) as stack:  # the next stack ends it
        assert stack.until(held.name, lambda job: job.end_time).state.name == "JOB_STATE_CANCELLED"


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        ("internal_error", 13, "Internal error occurred. The injection 'f1' struck here."),
        ("preempt", 8, "STOCKOUT: the machines of all replicas were preempted in region: us-central1."),
    ],
)
def test_all_replicas_of_a_job_are_lost_after_its_start(
    stack: Stack, kind: str, code: int, message: str
) -> None:
    inject(stack, kind, "*/spot", seconds=0.1)
    standard = stack.submit(container("print=x"))
    pools = (container("print=up", "sleep=600"), container("print=up", "sleep=600"))
    lost = stack.ended(stack.submit(*pools, scheduling={"strategy": "SPOT"}).name)
    assert (lost.state.name, lost.error.code, bool(lost.start_time)) == ("JOB_STATE_FAILED", code, True)
    assert lost.error.message.startswith(message)
    assert passed(stack, standard.name)


def test_a_region_without_quota_refuses_each_kind_of_machine_with_its_metric(stack: Stack) -> None:
    inject(stack, "over_quota", times=2)
    with pytest.raises(TooManyRequests, match=r"custom_model_training_nvidia_l4_gpus$"):
        stack.submit({**container("print=x"), "machine_spec": L4})
    with pytest.raises(TooManyRequests, match=r"custom_model_training_preemptible_cpus$"):
        stack.submit(container("print=x"), scheduling={"strategy": "SPOT"})
    assert passed(stack, stack.submit(container("print=x")).name)


def test_no_trial_of_a_tuning_starts_while_its_jobs_are_held(stack: Stack) -> None:
    inject(stack, "hold_pending")
    held = study(stack, "report(x, 1)", max_trial_count=1, parallel_trial_count=1)
    stack.until(held.name, lambda _job: account(stack.url, "f1")["struck"])
    job = stack.jobs.get_hyperparameter_tuning_job(name=held.name)
    assert job.state.name == "JOB_STATE_PENDING"
    assert not any(trial.start_time for trial in job.trials)
    release(stack)
    assert ended(stack, held.name).state.name == "JOB_STATE_SUCCEEDED"


def test_weather_changes_when_its_time_comes_and_ends_by_itself(stack: Stack) -> None:
    entries = [
        {"to": "2 s", "kind": "hold_pending"},
        {"from": "0 s", "to": "1 d", "kind": "hold_queued", "region": "europe-*"},
    ]
    ask(stack.url, {"name": "own", "at": "vertex.jobs", "kind": "stockout", "match": "asia-*"})
    began_s = time.time()
    first = weather(stack, "PUT", {"scale": "1 s = 1 s", "weather": entries})
    assert (first["length_s"], first["entries"], first["active"]) == (86400, 2, ["weather-0", "weather-1"])
    held = stack.submit(container("print=x"))
    assert passed(stack, held.name)
    assert stack.jobs.get_custom_job(name=held.name).start_time.timestamp() >= began_s + 2
    assert weather(stack)["active"] == ["weather-1"]
    assert weather(stack, "DELETE") == {}
    assert [one["name"] for one in httpx.get(f"{stack.url}{PATH}").json()["injections"]] == ["own"]
    weather(stack, "PUT", {"scale": "1 s = 30 d", "weather": entries[1:]})
    stack.until(held.name, lambda _job: not weather(stack))
    assert [one["name"] for one in httpx.get(f"{stack.url}{PATH}").json()["injections"]] == ["own"]


def test_the_command_plays_a_file_and_says_what_is_wrong_with_it(
    stack: Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    variables = {"GOOGLE_CLOUD_PROJECT": "p1", "TRAINMASTER_REGION": "us-central1"}
    services = ("STORAGE", "PUBSUB", "VERTEX", "LOGGING")
    announce(tmp_path, {**variables, **{f"{name}_EMULATOR_HOST": stack.url for name in services}})
    command, file = ["stack", "weather", "--state", str(tmp_path)], tmp_path / "week.yaml"
    file.write_text("weather:\n- {to: 2 x, kind: rain}\n")
    assert main([*command, str(file)]) == 2
    said = capsys.readouterr().err
    assert "$.weather[0].to: expected a time like" in said
    assert "$.weather[0].kind: expected one of" in said
    file.write_text(
        "weather:\n- {to: 2 d, kind: stockout}\n- {from: 1 d, to: 36 h, kind: preempt}\nscale: 1 s = 1 min\n"
    )
    assert main([*command, str(file), "--stop"]) == 2
    capsys.readouterr()
    assert [main([*command, *words]) for words in ([str(file)], [], ["--stop"], [])] == [0] * 4
    shown = "Hour 0.0 of 48.0; active of 2 entries: weather-0.\n"
    assert (
        re.sub(r"Hour \d\.\d", "Hour 0.0", capsys.readouterr().out) == shown * 2 + "No weather plays.\n" * 2
    )


def test_every_fault_of_a_schedule_is_reported_at_once() -> None:
    rows = [
        {"from": "1 h", "to": "1 h", "kind": "rain", "resource": "replicas", "spot": "no", "region": 7},
        {"to": "2 x", "kind": "kill", "times": -1, "seconds": 7000, "probability": 2, "sky": "grey"},
        {"to": "99999999 d", "kind": "stockout", "resource": "[" * 30_000},
        7,
        {},
    ]
    with pytest.raises(InvalidArgumentError) as refused:
        schedule_from({"scale": "6 h", "weathr": 1, "weather": rows})
    lines = str(refused.value).splitlines()
    assert sorted(line.partition(": ")[0] for line in lines) == sorted([
        "$.weathr", "$.scale", "$.weather[0].to", "$.weather[0].kind", "$.weather[0].resource", "$.weather[0].spot",
        "$.weather[0].region", "$.weather[1].to", "$.weather[1].kind", "$.weather[1].times", "$.weather[1].seconds",
        "$.weather[1].probability", "$.weather[1].sky", "$.weather[2].resource", "$.weather[3]", "$.weather",
        "$.weather[4].to", "$.weather[4].kind",
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("document", "fault"),
    [
        ({"weather": []}, "$.weather: expected a list of 1 to 1000 entries, found []."),
        (
            {"weather": [{"to": "1 s", "kind": "stockout"}] * (MAX_ENTRIES + 1)},
            "$.weather: expected a list of 1",
        ),
        (
            {"weather": [{"to": "25 h", "kind": "stockout"}]},
            "$.scale: at this scale the weather plays longer",
        ),
        (
            {"scale": "0 s = 1 h", "weather": [{"to": "1 s", "kind": "stockout"}]},
            "$.scale: expected two times",
        ),
        (
            {"weather": [{"to": "1 s", "kind": "stockout", "region": "us-centrall"}]},
            "$.weather[0].region: Vertex AI has no region 'us-centrall'; did you mean 'us-central1'?",
        ),
        (
            {"weather": [{"to": "1 s", "kind": "stockout", "resource": "NVIDIA_T4"}]},
            "$.weather[0].resource: Vertex AI has no accelerator named 'NVIDIA_T4'; expected a name like",
        ),
        ([], "$: expected a mapping"),
    ],
)
def test_a_schedule_is_bounded(document: object, fault: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        schedule_from(document)
    assert str(refused.value).startswith(fault)


@pytest.mark.parametrize("path", ["docs/how-to/rehearse-a-week.md", "trainstack/jobs/weather.py"])
def test_the_schedules_in_the_documents_are_valid(path: str) -> None:
    text = (ROOT / path).read_text()
    block = text.partition("\nscale:")[2].partition("\n\n")[0].partition("```")[0]
    assert schedule_from(yaml.safe_load(f"scale:{block}")).entries


EXAMPLES = sorted((ROOT / "schemas/examples").glob("*/weather.*"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_stack_takes_what_the_schema_allows(path: Path) -> None:
    is_valid = path.parent.name == "valid"
    with contextlib.nullcontext() if is_valid else pytest.raises(InvalidArgumentError):
        schedule_from(yaml.safe_load(path.read_text()))


def test_the_schema_knows_every_kind_and_field_of_an_entry() -> None:
    schema = json.loads((ROOT / "schemas" / "weather.v1.schema.json").read_text())
    entry = schema["$defs"]["entry"]["properties"]
    assert set(entry["kind"]["enum"]) == {kind.value for kind in JOB_KINDS}
    with pytest.raises(InvalidArgumentError, match=f"expected one of {', '.join(entry)}\\."):
        schedule_from({"weather": [{"to": "1 s", "kind": "stockout", "sky": "grey"}]})
