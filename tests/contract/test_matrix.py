"""A request with a matrix: N runs of one group, launched, counted and cancelled together."""

import json
from decimal import Decimal

import pytest

from tests.contract.boundaries import At, only_at, raising
from tests.contract.index import index_rows
from tests.contract.retraining import SMALL, RuleWorld, rule
from tests.contract.schemas import RECORD, STATUS
from tests.contract.world import OBJECT, Killed, World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import run_id_in_group
from trainmaster.orchestrator.core.policy.admission import Admission, Caps
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.record import RunRecord

FOUR = {**SMALL, "args": ["--epochs=5"], "matrix": {"learning_rate": [0.1, 0.01], "depth": [3, 5]}}
ARGS = [[f"--learning_rate={rate}", f"--depth={depth}"] for rate in (0.1, 0.01) for depth in (3, 5)]
DEAREST = Decimal("43.2")
"""What one of the runs may cost: a day of n1-standard-4."""


def launched(
    world: World, document: object = FOUR, name: str = OBJECT
) -> tuple[IncomingDocument, list[RunRecord]]:
    """The event, and the records of its runs in the order of the combinations."""
    incoming = world.drop_and_launch(json.dumps(document).encode(), name)
    return incoming, runs_of(world, incoming)


def runs_of(world: World, incoming: IncomingDocument) -> list[RunRecord]:
    ids = [run_id_in_group(incoming.run_id, number) for number in range(1, 5)]
    return [held.record for run_id in ids if (held := world.services().ledger.find(run_id)) is not None]


def test_each_combination_is_a_run_with_its_own_arguments(world: World) -> None:
    incoming, records = launched(world)
    for record, args in zip(records, ARGS, strict=True):
        RECORD.validate(encoded(record))
        document = present(record.request).document
        assert document["args"] == ["--epochs=5", *args]
        assert "matrix" not in document
        assert present(record.source.group).id == incoming.run_id
    assert {row.group for row in index_rows(world.objects)} == {incoming.run_id}
    assert len(world.jobs.all()) == 4


def test_the_status_names_all_runs_and_says_how_the_first_one_is(world: World) -> None:
    incoming, (first, *others) = launched(world)
    world.train(others[0])
    world.reconcile()
    status = world.document(f"status/{OBJECT}.json")
    STATUS.validate(status)
    assert status["run_ids"] == [first.run_id, *(other.run_id for other in others)]
    assert (status["run_id"], status["state"]) == (first.run_id, "submitted")
    assert world.services().ledger.find(incoming.run_id) is None


def test_a_redelivery_launches_the_rest_although_a_cap_is_full_by_now() -> None:
    world = World(request_rules_with(admission=Admission(caps=Caps(runs_per_hour=5))))
    incoming = world.drop(json.dumps(FOUR).encode(), OBJECT)
    with pytest.raises(Killed):
        world.launch(incoming, At("write runs", after=only_at(3, raising(Killed("crash")))))
    assert len(runs_of(world, incoming)) == 2
    world.clock.advance(world.services().lease * 2)
    world.request_rules = request_rules_with(admission=Admission(caps=Caps(runs_per_hour=1)))
    world.launch(incoming)
    assert len(runs_of(world, incoming)) == 4
    assert world.launch(incoming).message.startswith("the run already exists")
    assert len(world.jobs.all()) == 4


@pytest.mark.parametrize("is_overwritten", [False, True])
def test_if_a_redelivery_cannot_launch_the_rest_each_of_it_is_rejected_and_names_the_others(
    world: World, is_overwritten: bool
) -> None:
    incoming = world.drop(json.dumps(FOUR).encode(), OBJECT)
    with pytest.raises(Killed):
        world.launch(incoming, At("write runs", after=only_at(3, raising(Killed("crash")))))
    accepted = [record.run_id for record in runs_of(world, incoming)]
    if is_overwritten:
        world.drop(json.dumps(SMALL).encode(), OBJECT)
    else:
        world.request_rules = request_rules_with(images=("host.example/**",))
    for _ in range(2):
        world.launch(incoming)
    records = runs_of(world, incoming)
    assert [record.state.value for record in records] == ["rejected", "rejected", "reserved", "submitted"]
    assert world.services().ledger.find(incoming.run_id) is None
    status = world.document(f"status/{OBJECT}.json")
    STATUS.validate(status)
    assert (status["state"], status["run_ids"]) == ("rejected", [record.run_id for record in records])
    said, why = status["problems"][:2]
    assert said.startswith(
        "$: 2 of the 4 runs of this matrix were accepted before the others were refused; found "
    )
    assert all(run_id in said for run_id in (*accepted, f"trainmaster cancel {incoming.run_id}"))
    assert ("overwritten before it was read" if is_overwritten else "the policy does not allow it") in why
    world.reconcile()
    rows = {row.run_id: row.state.value for row in index_rows(world.objects) if row.group == incoming.run_id}
    assert rows == {record.run_id: record.state.value for record in runs_of(world, incoming)}
    world.clock.advance(world.services().lease * 2)
    order = {"cancel": {"run": incoming.run_id}}
    world.drop_and_launch(json.dumps(order).encode(), "requests/end.json")
    assert [record.cancel_requested_at is not None for record in runs_of(world, incoming)][2:] == [True, True]


@pytest.mark.parametrize(
    ("caps", "problem", "found"),
    [
        (Caps(runs_per_hour=3), "0 runs were started in the hour from 12:00 UTC", "4 more, after 0"),
        (
            Caps(cost_per_day=3 * DEAREST),
            "the runs started on 2026-03-01 (UTC) have cost or may still cost ",
            "at most 172.80 USD for the 4 runs of this matrix",
        ),
    ],
)
def test_a_matrix_without_room_for_all_is_refused_whole_with_one_fault(
    caps: Caps, problem: str, found: str
) -> None:
    world = World(request_rules_with(admission=Admission(caps=caps)), lambda: PRICES)
    incoming, records = launched(world)
    assert records == []
    (fault,) = world.document(f"rejected/{incoming.run_id}.json")["faults"]
    assert (fault["problem"].startswith(problem), fault["found"]) == (True, found)
    assert world.jobs.all() == []


def test_the_unspent_cost_of_a_group_is_free_when_its_last_run_has_ended() -> None:
    caps = Caps(cost_per_day=4 * DEAREST + 2)
    world = World(request_rules_with(admission=Admission(caps=caps)), lambda: PRICES)
    _, records = launched(world)
    states = []
    for record in records:
        other = world.drop_and_launch(json.dumps(SMALL).encode(), f"requests/{record.run_id}.json")
        states.append(world.record(other.run_id).state)
        world.train(record)
        world.reconcile()
    assert states == ["rejected"] * 4
    other = world.drop_and_launch(json.dumps(SMALL).encode(), "requests/after.json")
    assert world.record(other.run_id).state == "submitted"


def test_an_order_cancels_one_run_or_the_group(world: World) -> None:
    incoming, (first, second, *_) = launched(world)
    for number, (named, asked) in enumerate({second.run_id: 1, incoming.run_id: 4}.items()):
        order = {"cancel": {"run": named}}
        world.drop_and_launch(json.dumps(order).encode(), f"requests/end-{number}.json")
        assert sum(record.cancel_requested_at is not None for record in runs_of(world, incoming)) == asked
    status = world.document("status/requests/end-1.json.json")
    assert status["record_uri"] == world.services().ledger.record_uri(first.run_id)


def test_a_rule_with_a_matrix_is_refused() -> None:
    world = RuleWorld()
    world.drop_rule({**rule(), "request": FOUR})
    (problem,) = world.rule_status()["problems"]
    assert problem.startswith("$.request.matrix: a rule starts one run each time it fires")
