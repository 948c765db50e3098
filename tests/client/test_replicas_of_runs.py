"""Replicas and trials that a selection of a run's log may name."""

from datetime import UTC, datetime

import pytest

from tests.client.served import run_record
from trainmaster.client.errors import NotFound
from trainmaster.client.logs.read import Selection, check_selection
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.runs.record import RunRecord

TUNING = {
    "max_trials": 5,
    "metrics": [{"id": "accuracy", "goal": "maximize"}],
    "parameters": {"lr": {"type": "double", "min": 0.1, "max": 1.0}},
}
NOW = datetime(2026, 3, 4, tzinfo=UTC)


def running(**tuning: object) -> RunRecord:
    document = run_record("succeeded")
    document["request"]["document"]["tuning"] = TUNING | tuning
    return decoded(RunRecord, document)


def test_before_a_tuning_ends_every_trial_that_it_may_have_is_selected() -> None:
    for number in range(1, 6):
        check_selection(Selection(trial_id=str(number)), running())


@pytest.mark.parametrize("trial", ["0", "6", "99", "-1", "one", "", "²", "1" * 5000])
def test_a_trial_that_a_tuning_cannot_have_is_not_found(trial: str) -> None:
    with pytest.raises(NotFound, match=r"It has trials 1 to 5\.$"):
        check_selection(Selection(trial_id=trial), running())


@pytest.mark.parametrize(
    ("replica", "name"),
    [
        ("chief", "workerpool0-0"),
        ("chief-0", "workerpool0-0"),
        ("worker-2", "workerpool1-2"),
        ("ps-0", "workerpool2-0"),
        ("evaluator-0", "workerpool3-0"),
        ("workerpool1-0", "workerpool1-0"),
        ("service", "service"),
    ],
)
def test_a_replica_is_named_by_its_role_too(replica: str, name: str) -> None:
    found = Selection(replica=replica).filter_of(["7"], NOW)
    assert f'resource.labels.task_name="{name}"' in found


@pytest.mark.parametrize("replica", ["chief", "chief-0", "workerpool0-0"])
def test_the_chief_of_a_run_is_found_under_each_name(replica: str) -> None:
    check_selection(Selection(replica=replica), running())
    with pytest.raises(NotFound, match="has no replica 'worker-9'"):
        check_selection(Selection(replica="worker-9"), running())
