"""The odds of each event, and the disruptions that a delivery meets."""

from dataclasses import dataclass
from random import Random

from tests.contract.simulation.disruptions import Disruption

CALLS_PER_DELIVERY = 9.0
CALLS_PER_TICK = 50.0
"""The mean number of the call that is disrupted. Beyond the last call, nothing happens."""
FAULTS = (
    Disruption.KILLED_BEFORE,
    Disruption.KILLED_AFTER,
    Disruption.KILLED_IN_FLIGHT,
    Disruption.FAILED_BEFORE,
    Disruption.FAILED_AFTER,
    Disruption.REPEATED,
)
PAUSING = (Disruption.PAUSED_BEFORE, Disruption.PAUSED_AFTER)


@dataclass(frozen=True, kw_only=True)
class Odds:
    """Shares of deliveries, events, jobs or requests, 0 to 1; times are means of exponential draws, in seconds."""

    disruption: float = 0.12
    pause: float = 0.08
    pause_s: float = 15.0
    duplicate: float = 0.1
    dropped: float = 0.03
    """Log entries, notices and ticks only; uploads and messages are redelivered until acknowledged."""
    delayed: float = 0.1
    delayed_s: float = 120.0
    beyond_lease: float = 0.0
    """Share of pauses after which the process was not stopped at its timeout and continues after its lease."""
    capped: float = 0.2
    """Share of simulations whose policy caps the runs per hour."""
    invalid: float = 0.05
    overwriting: float = 0.3
    message: float = 0.2
    with_key: float = 0.5
    saved_again: float = 0.05
    """Share of files that are saved once or twice more within seconds, with the same bytes."""
    reused_key: float = 0.05
    """Share of keys that name another document too."""
    between_requests_s: float = 10.0
    queue_s: float = 20.0
    work_s: float = 80.0
    held: float = 0.1
    """Share of jobs that start late: most of them after the deadline of a request with fallbacks."""
    held_s: float = 400.0
    late_cancel: float = 0.6
    """Share of cancellations that take effect late: the job may start, or end, in between."""
    late_cancel_s: float = 90.0
    long_work: float = 0.01
    cancel_order: float = 0.02
    """Share of requests that users cancel again, about when the job runs."""
    forged_entry: float = 0.05
    forged_job: float = 0.005
    foreign_entry: float = 0.05

    def plan(self, random: Random, mean_calls: float) -> dict[int, Disruption]:
        """The disruptions of one delivery, by the number of the call."""
        plan: dict[int, Disruption] = {}
        if random.random() < self.pause:
            plan[int(random.expovariate(1 / mean_calls))] = random.choice(PAUSING)
        if random.random() < self.disruption:
            plan[int(random.expovariate(1 / mean_calls))] = random.choice(FAULTS)
        return plan
