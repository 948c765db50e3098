"""The one description of the deployment names what the contracts promise."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from trainmaster.deploy.doctor.deployment import deployment_of
from trainmaster.resources import PLACEHOLDERS, TOPOLOGY, TOPOLOGY_MAX_BYTES, NotATopology, parse_topology

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


def test_only_what_the_parser_knows_is_substituted() -> None:
    text = (ROOT / "trainmaster/deploy/topology.yaml").read_text()
    found = set(re.findall(r"\$\{(\w+)\}", text))
    assert found == set(PLACEHOLDERS)


def test_entry_points_are_the_functions_of_main(topology: dict[str, Any]) -> None:
    source = (ROOT / "functions/main.py").read_text()
    defined = set(re.findall(r"^def (on_\w+)\(", source, re.MULTILINE))
    assert defined == {function["entry_point"] for function in topology["functions"].values()}


def refusal(file: Path) -> str:
    with pytest.raises(NotATopology) as refused:
        parse_topology(file, project="p1", region="r1")
    return str(refused.value)


def test_a_file_of_another_kind_is_no_topology_and_says_what_it_lacks(tmp_path: Path) -> None:
    quota = tmp_path / "quota.yaml"
    quota.write_text("us-central1: {T4: 1}\n")
    assert refusal(quota) == (
        f"{quota} is not a topology: it has no buckets, topics, sinks, functions, environment, images. "
        f"The default one is {TOPOLOGY}: copy and change it, or leave out --topology."
    )


@pytest.mark.parametrize(
    ("section", "name"), [("buckets", "ledger"), ("images", "trainer"), ("environment", "TRAINMASTER_REGION")]
)
def test_a_part_that_is_looked_up_by_its_name_is_missed(
    topology: dict[str, Any], section: str, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "topology.yaml"
    parts = {key: part for key, part in topology[section].items() if key != name}
    file.write_text(yaml.safe_dump({**topology, section: {**parts, "other": "x"}}))
    assert f"it has no {section}.{name}." in refusal(file)


def test_of_a_large_file_only_the_beginning_is_read(tmp_path: Path) -> None:
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(TOPOLOGY_MAX_BYTES + 1)
    assert "more than" in refusal(large)
    assert refusal(Path("/dev/zero")) == "/dev/zero: expected a topology, found no regular file."


def test_the_doctor_expects_one_sink_with_a_filter(topology: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "topology.yaml"
    file.write_text(yaml.safe_dump({**topology, "sinks": {"s": {"topic": "job_logs"}}}))
    with pytest.raises(ValueError, match=r"\$\.sinks: expected one sink with a filter_file"):
        deployment_of(project="p1", region="r1", topology=file)
