"""The cost of an ended run is beside its estimate, in its record and in the index."""

from decimal import Decimal
from pathlib import Path

from tests.contract.index import index_rows
from tests.contract.schemas import RECORD
from tests.contract.world import World, request_rules_with
from tests.core.admission_cases import PRICES
from tests.narrowing import present
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import PolicyInvalid
from trainmaster.orchestrator.core.policy.admission import Admission
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

REQUEST = b"""
model_name: m
image: us-central1-docker.pkg.dev/my-project/trainmaster/trainer:latest
scheduling: {timeout_s: 3600}
cluster:
  chief: {machine: n1-standard-4}
  workers: {machine: n1-standard-8, count: 2}
"""
ESTIMATED = request_rules_with(admission=Admission(estimates=True))


def ended(world: World) -> RunRecord:
    """The record of a run that was launched, and whose job ran for ten minutes."""
    incoming = world.drop_and_launch(REQUEST)
    world.train(world.record(incoming.run_id))
    world.reconcile()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    RECORD.validate(encoded(record))
    return record


def test_the_cost_of_a_run_stands_beside_its_estimate() -> None:
    world = World(ESTIMATED, lambda: PRICES)
    record = ended(world)
    assert present(present(record.request).estimate).per_hour == Decimal("6.0")
    assert record.completion is not None
    assert record.completion.cost is not None
    assert record.completion.cost.total == Decimal("1.0")
    assert record.completion.cost.roles == {"chief": Decimal("0.3"), "workers": Decimal("0.7")}
    (row,) = index_rows(world.objects)
    assert (row.per_hour, row.at_most, row.cost, row.currency) == (Decimal(6), Decimal(6), Decimal(1), "USD")


def test_a_run_without_an_estimate_has_no_cost_and_reads_no_prices() -> None:
    def never() -> Prices:
        raise AssertionError("the price table was read")

    completion = present(ended(World(prices=never)).completion)
    assert completion.cost is None


def test_a_price_table_that_became_unusable_keeps_no_run_from_ending() -> None:
    world = World(ESTIMATED, lambda: PRICES)
    incoming = world.drop_and_launch(REQUEST)

    def broken() -> Prices:
        raise PolicyInvalid(str(Path("prices.yaml")), ("it is no table",))

    world.prices = broken
    world.train(world.record(incoming.run_id))
    world.reconcile()
    record = world.record(incoming.run_id)
    assert record.state is RunState.SUCCEEDED
    assert record.problems[-1].startswith("the cost of the run is unknown: ")
    assert world.active() == []
