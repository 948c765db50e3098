"""Run a simulation from its seed to its tally."""

from tests.contract.simulation.guarantees import check_guarantees
from tests.contract.simulation.odds import Odds
from tests.contract.simulation.simulation import Simulation
from tests.contract.simulation.tally import Tally
from tests.contract.simulation.workload import TrainingJobs, Users


def simulate(*, seed: str, events: int, odds: Odds | None = None) -> Tally:
    return run_and_check(Simulation(seed=seed, odds=odds), events)


def run_and_check(simulation: Simulation, events: int) -> Tally:
    """Send requests until `events` deliveries were made, run until idle, then check every guarantee."""
    users, training_jobs = Users(simulation, events), TrainingJobs(simulation)
    simulation.run()
    return check_guarantees(simulation, users, training_jobs)
