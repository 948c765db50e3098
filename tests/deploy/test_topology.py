"""The one description of the deployment names what the contracts promise."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def topology() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "trainmaster/deploy/topology.yaml").read_text())
    return loaded


def test_every_trigger_and_sink_names_a_bucket_or_topic_that_exists(topology: dict[str, Any]) -> None:
    for function in topology["functions"].values():
        ((kind, name),) = function["trigger"].items()
        assert name in topology[{"bucket": "buckets", "topic": "topics"}[kind]]
    for feed in [*topology["sinks"].values(), *topology["schedules"].values()]:
        assert feed["topic"] in topology["topics"]


def test_every_function_that_is_retried_gives_up_within_the_day_that_its_events_are_kept(
    topology: dict[str, Any],
) -> None:
    for function in topology["functions"].values():
        assert ("dead_letter" in function) == function["retry"]
        if not function["retry"]:
            continue
        attempts = function["dead_letter"]["max_attempts"]
        # Eventarc's pauses: 10 s, doubled up to 600 s. https://cloud.google.com/eventarc/docs/retry-events
        pauses_s = sum(min(10 * 2**failure, 600) for failure in range(attempts - 1))
        assert pauses_s + attempts * function["timeout_s"] < 24 * 3600
        assert 5 <= attempts <= 100


def test_a_dead_letter_has_a_subscription_that_keeps_it(topology: dict[str, Any]) -> None:
    kept = {subscription["topic"] for subscription in topology["subscriptions"].values()}
    given_up = {each["dead_letter"]["topic"] for each in topology["functions"].values() if each["retry"]}
    assert given_up <= kept


def test_bucket_names_in_the_environment_are_the_buckets(topology: dict[str, Any]) -> None:
    for role, name in topology["buckets"].items():
        assert topology["environment"][f"TRAINMASTER_{role.upper()}_BUCKET"] == name


def test_only_project_and_region_are_substituted() -> None:
    text = (ROOT / "trainmaster/deploy/topology.yaml").read_text()
    found = set(re.findall(r"\$\{(\w+)\}", text))
    assert found == {"project", "region"}


def test_entry_points_are_the_functions_of_main(topology: dict[str, Any]) -> None:
    source = (ROOT / "functions/main.py").read_text()
    defined = set(re.findall(r"^def (on_\w+)\(", source, re.MULTILINE))
    assert defined == {function["entry_point"] for function in topology["functions"].values()}
