"""How often what happens, and to what a delivery is fated."""

from dataclasses import dataclass
from random import Random

from tests.contract.life.accidents import Accident

CALLS_OF_A_DELIVERY = 9.0
CALLS_OF_A_TICK = 50.0
"""Where an accident strikes: the mean of the call's number. One beyond the last call does not happen."""
FATAL = (
    Accident.KILLED_BEFORE,
    Accident.KILLED_AFTER,
    Accident.KILLED_IN_FLIGHT,
    Accident.FAILED_BEFORE,
    Accident.FAILED_AFTER,
    Accident.REPEATED,
)
PAUSING = (Accident.PAUSED_BEFORE, Accident.PAUSED_AFTER)


@dataclass(frozen=True, kw_only=True)
class Odds:
    """Shares of deliveries, events, jobs or requests, 0 to 1; times are means of exponential draws, in seconds."""

    accident: float = 0.12
    pause: float = 0.08
    pause_s: float = 15.0
    duplicate: float = 0.1
    dropped: float = 0.03
    """Of log entries, notices and ticks; an upload or a message is redelivered until it is acknowledged."""
    delayed: float = 0.1
    delayed_s: float = 120.0
    beyond_lease: float = 0.0
    """Of pauses: the process is not ended at its timeout and goes on after its lease."""
    capped: float = 0.2
    """Of lives: the policy caps how many runs may start in an hour."""
    faulty: float = 0.05
    overwriting: float = 0.3
    message: float = 0.2
    with_key: float = 0.5
    arrival_s: float = 10.0
    queue_s: float = 20.0
    work_s: float = 80.0
    long_work: float = 0.01
    ordered_to_end: float = 0.02
    """Of requests: their users have changed their minds, about when the job is at work."""
    forged_entry: float = 0.05
    forged_job: float = 0.005
    foreign_entry: float = 0.05

    def plan(self, random: Random, mean_calls: float) -> dict[int, Accident]:
        """Which calls of one delivery something befalls."""
        plan: dict[int, Accident] = {}
        if random.random() < self.pause:
            plan[int(random.expovariate(1 / mean_calls))] = random.choice(PAUSING)
        if random.random() < self.accident:
            plan[int(random.expovariate(1 / mean_calls))] = random.choice(FATAL)
        return plan
