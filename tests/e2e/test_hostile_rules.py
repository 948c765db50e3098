"""Of many rules on a running stack, the hostile ones cost the others nothing.

tests/contract/test_turns.py has a thousand of them.
"""

import json
from collections.abc import Iterator

import httpx
import pytest

from .project import Project, request, running_project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

HONEST = [f"honest-{number:03}" for number in range(60)]
DAMAGED = [f"damaged-{number:02}" for number in range(8)]
"""Rules in force whose state no parser can read."""
EXPENSIVE = [f"0-expensive-{number}" for number in range(6)]
"""Files that sort before all rules, with a template that is costly to check."""


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A stack without room for any job, so that every run waits and the test costs no training."""
    state = tmp_path_factory.mktemp("hostile") / "state"
    with running_project(state, "--tick-s", "25", project="e2e-hostile") as project:
        quota = {"quotas": {project.region: {"replicas": 0}}}
        answer = httpx.put(f"{project.env['VERTEX_EMULATOR_HOST']}/emulator/v1/quota", json=quota, timeout=60)
        assert answer.status_code == 200, answer.text
        yield project


def expensive_template(project: Project) -> str:
    values = [round(number / 7, 6) for number in range(20_000)]
    return request(
        project.id,
        tuning={
            "metrics": [{"id": "loss", "goal": "minimize"}],
            "parameters": {"rate": {"type": "discrete", "values": values}},
            "max_trials": 2,
            "parallel_trials": 1,
        },
        fallbacks=[{"scheduling": {"spot": True}}] * 8,
    )


def test_every_honest_rule_fires_in_the_same_tick(full: Project) -> None:
    data = f"{full.id}-data"
    watches = {"new_data": {"objects": f"gs://{data}/all/**", "quiet_s": 0}}
    document = {"when": [watches], "request": json.loads(request(full.id)), "max_per_day": 1}
    inbox, ledger = full.storage.bucket(full.inbox), full.storage.bucket(full.ledger)
    for rule_id in (*HONEST, *DAMAGED):
        inbox.blob(f"rules/{rule_id}.json").upload_from_string(json.dumps(document))

    def in_force() -> bool:
        book = full.document(full.ledger, "rules/book.json") or {"rules": []}
        return len(book["rules"]) == len(HONEST) + len(DAMAGED)

    full.eventually(in_force, "every rule is in the book")
    for rule_id in DAMAGED:
        ledger.blob(f"rule-state/{rule_id}.json").upload_from_string("[" * 200_000)
    inbox.blob("templates/expensive.json").upload_from_string(expensive_template(full))
    hostile = {
        "when": [watches] * 10,
        "request_uri": f"gs://{full.inbox}/templates/expensive.json",
    }
    for rule_id in EXPENSIVE:
        inbox.blob(f"rules/{rule_id}.json").upload_from_string(json.dumps(hostile))
    full.storage.bucket(data).blob("all/1.jpg").upload_from_string(b"x")

    def fired() -> bool:
        rules = {record["source"].get("rule_id") for record in full.records().values()}
        return set(HONEST) <= rules

    full.eventually(fired, "every honest rule has fired")
    runs = [each for each in full.records().values() if each["source"].get("rule_id") in HONEST]
    assert len(runs) == len(HONEST)
    log = (full.state / "logs" / "on-tick.log").read_text()
    lines = [json.loads(line) for line in log.splitlines() if "fired (new_data, number 1)" in line]
    assert len({line["event_id"] for line in lines}) == 1, "one tick fired all of them"
