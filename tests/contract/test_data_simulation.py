"""Simulated users write, move and delete data while deliveries fail: no object is in two firings or in none."""

import pytest

from tests.contract.simulation.odds import Odds
from tests.contract.simulation.simulation import Simulation
from tests.contract.simulation.uploaders import Uploaders
from tests.contract.simulation.workload import TrainingJobs
from trainmaster.orchestrator.flows.retraining import data

EVENTS = 1200
HARD = Odds(disruption=0.4, pause=0.3, duplicate=0.3, dropped=0.3, delayed=0.3)


@pytest.mark.parametrize(
    ("seed", "odds", "chunk"),
    [
        ("one", Odds(), 10_000),
        pytest.param("hard", HARD, 10_000, marks=pytest.mark.slow),
        pytest.param("in parts", Odds(), 7, marks=pytest.mark.slow),
        pytest.param("hard, in parts", HARD, 7, marks=pytest.mark.slow),
    ],
)
def test_every_object_is_in_one_manifest_of_each_rule(
    seed: str, odds: Odds, chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "CHUNK_MAX", chunk)
    simulation = Simulation(seed=seed, odds=odds)
    uploaders, _ = Uploaders(simulation, EVENTS), TrainingJobs(simulation)
    simulation.run()
    assert simulation.tally.bugs == []
    assert list(uploaders.violations()) == []
    fired = {record.source.rule_id for record in simulation.world.records()}
    assert fired == {"all", "folders"}
    assert len(simulation.world.records()) > 20
