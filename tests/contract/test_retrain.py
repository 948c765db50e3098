"""From a dropped rule to a launched run."""

import pytest

from tests.contract.retraining import DATA, NEW_DATA, RuleWorld, rule


@pytest.fixture
def world() -> RuleWorld:
    return RuleWorld()


def test_data_that_came_and_settled_starts_one_run(world: RuleWorld) -> None:
    world.drop_rule(rule())
    world.arrive(5)
    world.tick()
    assert world.records() == []
    world.wait(61)
    world.tick()
    world.wait(60)
    world.tick()
    (record,) = world.records()
    assert record.state == "submitted"
    assert record.request is not None
    assert record.request["args"] == ["--seen=5"]
    assert (record.source.kind, record.source.rule_id, record.source.firing) == ("rule", "cassava", 1)
    assert world.batches() == []
