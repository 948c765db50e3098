"""The topology file is read whole, and every fault in it is named."""

from pathlib import Path

import pytest
import yaml

from trainmaster.cli.stack.product import read_topology
from trainstack.events.eventarc import transport_of
from trainstack.functions.function import TopicTrigger
from trainstack.stack.errors import BadTopologyError
from trainstack.stack.topology import sources_of

ROOT = Path(__file__).resolve().parents[3]


def read(path: Path) -> object:
    return read_topology(path, project="p1", region="europe-west4")


def test_a_teams_own_topic_is_a_further_source_of_the_function_of_requests() -> None:
    path = ROOT / "trainmaster" / "deploy" / "topology.yaml"
    topology = read_topology(path, project="p1", region="europe-west4")
    sources = sources_of(
        topology, {"vision": "requests-vision", "speech": "trainmaster-requests", "text": None}
    )
    assert [source.trigger for source in sources[:-1]] == list(topology.functions)
    own = sources[-1]
    assert (own.trigger.name, own.function) == ("on-request-published-vision", "on-request-published")
    assert own.trigger.trigger == TopicTrigger(topic="requests-vision")
    (function,) = (each for each in topology.functions if each.name == own.function)
    assert (own.trigger.dead_letter, own.trigger.retry) == (function.dead_letter, True)
    transport = transport_of(own.trigger, project="p1", region="europe-west4")
    assert transport.topic_name == "projects/p1/topics/requests-vision"
    assert (
        transport.subscription_name
        == "projects/p1/subscriptions/eventarc-europe-west4-on-request-published-vision-sub"
    )


def test_every_fault_is_named_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    roles = ("inbox", "ledger", "models", "champions", "data")
    needed = {f"TRAINMASTER_{role.upper()}_BUCKET": "b" for role in roles}
    faulty = {
        "buckets": {role: f"${{project}}-{role}" for role in roles},
        "images": {"trainer": "trainer"},
        "topics": {"ticks": "ticks"},
        "sinks": {"s": {"topic": "tocks", "filter_file": "missing.filter"}},
        "functions": {
            "f": {"entry_point": "f", "trigger": {"bucket": "outbox"}, "timeout_s": 0, "concurrency": True,
                  "memory_mib": "many", "retry": "yes", "dead_letter": {"topic": "ticks", "max_attempts": 5}},
            "g": {"entry_point": "g", "trigger": {"topic": "ticks"}, "retry": True,
                  "dead_letter": {"topic": "ticks", "max_attempts": 101}},
        },
        "subscriptions": {"kept": {"topic": "tocks", "retention_h": 0}},
        "schedules": {"s": {"cron": "61 * * * *", "topic": "ticks", "data": "x"}},
        "environment": {"A": 1, "TRAINMASTER_REGION": "r", **needed},
    }  # fmt: skip
    path.write_text(yaml.safe_dump(faulty))
    with pytest.raises(BadTopologyError) as refused:
        read(path)
    for expected in (
        "$.sinks.s.topic: expected one of ['ticks'], found 'tocks'",
        "$.sinks.s.filter_file:",
        "$.subscriptions.kept.topic: expected one of ['ticks'], found 'tocks'",
        "$.subscriptions.kept.retention_h: expected an integer of at least 1, found 0",
        "$.functions.f.dead_letter: expected {topic: one of ['ticks'], max_attempts: 5 to 100} with retry: true",
        "$.functions.g.dead_letter: expected",
        "$.functions.f.trigger: expected {bucket: one of ['champions', 'data', 'inbox', 'ledger', 'models']} or {topic: one of ['ticks']}",
        "$.functions.f.timeout_s: expected an integer of at least 1, found 0",
        "$.functions.f.concurrency: expected an integer of at least 1, found True",
        "$.functions.f.memory_mib: expected an integer of at least 1, found 'many'",
        "$.functions.f.retry: expected true or false, found 'yes'",
        "$.schedules.s: Schedule s: '61 * * * *': Bad minute",
        "$.environment.A: expected a text, found 1",
    ):
        assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("buckets: {inbox: ${proyect}-inbox}", r"unknown substitution \$\{proyect\}"),
        ("- a\n- b", "is not a topology: it has no buckets, topics, sinks, functions, environment, images"),
        ("", "is not a topology: it has no buckets, topics"),
        ("us-central1: {T4: 1}", r"is not a topology: .*The default one is .*topology\.yaml"),
        ("a: [", "cannot read"),
        ("cost: $5", "cannot read"),
    ],
)
def test_an_invalid_topology_file_is_refused(text: str, why: str, tmp_path: Path) -> None:
    path = tmp_path / "topology.yaml"
    path.write_text(text)
    with pytest.raises(BadTopologyError, match=why):
        read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadTopologyError, match=r"cannot read .*nowhere\.yaml"):
        read(tmp_path / "nowhere.yaml")
