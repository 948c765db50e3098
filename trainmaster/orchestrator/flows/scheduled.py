"""A tick of the schedule: active runs, rules, dropped rules, idle pools, jobs that idle, and what is no longer kept."""

from collections.abc import Iterator
from functools import partial

from trainmaster.orchestrator.flows.lifecycle.pools import delete_idle_pools
from trainmaster.orchestrator.flows.reconcile import reconcile
from trainmaster.orchestrator.flows.retention import clean
from trainmaster.orchestrator.flows.retraining.tick import tick_rules
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.turns import QUEUE_SHARE, RUNS_SHARE, Turns
from trainmaster.orchestrator.flows.waste import find_wasteful
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.ledger import ACTIVE_MAX


def take_tick(services: Services) -> Iterator[FlowResult]:
    """Give every active run, rule and dropped rule its turn, as far as there is time. Safe to repeat.

    After a tick that has not ended, the rules come first: that tick may have died before their turn.

    Raises:
        Exception: a part of the tick failed as a whole; the other part had its turn, and the next tick tries again.
    """
    turns = Turns(services)
    markers, has_more = services.ledger.active()
    if has_more:
        message = (
            f"more than {ACTIVE_MAX:,} runs are active: this tick knows the first {ACTIVE_MAX:,} by id; "
            "the others wait for their own events, or until runs before them have ended"
        )
        yield FlowResult(message=message, severity="WARNING", event=LogEvent.RECONCILE_BEHIND)
    rules_first = bool(markers) and turns.careful
    runs = partial(reconcile, services, turns, markers)
    rules = partial(tick_rules, services, turns, reserved=RUNS_SHARE + QUEUE_SHARE if rules_first else 0.0)
    pools = partial(delete_idle_pools, services, markers)
    waste = partial(find_wasteful, services, markers)
    retention = partial(clean, services)
    failure: Exception | None = None
    # Otherwise runs first: the end of a run makes room for its rule's next run.
    first = (rules, runs) if rules_first else (runs, rules)
    for part in (*first, pools, waste, retention):
        try:
            yield from part()
        except Exception as error:  # raised below
            failure = failure or error
    turns.end()
    if failure is not None:
        raise failure
