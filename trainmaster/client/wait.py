"""Waits until a run has ended, by reading its record."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from trainmaster.client.clients import Clients
from trainmaster.client.context import Context
from trainmaster.client.errors import TimedOut
from trainmaster.client.find import Run
from trainmaster.client.logs.follow import find_run_to_follow, read_again
from trainmaster.client.runs.facts import is_active_tuning, trials_text
from trainmaster.orchestrator.core.completion.steps import CHAMPION, REASON, is_over
from trainmaster.orchestrator.core.runs.states import RunState
from trainstack.find import NoStack

FIRST_PAUSE_S, LONGEST_PAUSE_S, LONGEST_LOCAL_PAUSE_S = 0.2, 15.0, 1.0
PAUSE_GROWTH = 1.5
SETTLED_WITHIN_S = 15.0
"""The service looks for late lines of the log for longer, and a large model takes longer to copy; a caller that waits for
a run need not."""
EVALUATED_WITHIN_S = 120.0
"""The same for a run whose model another job scores."""
T = TypeVar("T")


def wait_for_end(
    clients: Clients,
    text: str,
    *,
    timeout_s: float | None = None,
    on_change: Callable[[Run], object] = lambda _: None,
) -> Run:
    """The run that `text` means, as in `find_run`, once it has ended.

    Args:
        clients: of the context that has the run.
        text: a run's id, a file or a message.
        timeout_s: in seconds; None waits as long as it takes.
        on_change: gets the run as it is first, and after each change of its state that was seen. A tuning is as in
            `tuning_now`, and the end of a trial is a change, too. No log is read.

    Raises:
        NotFound: no run, file or message has this name.
        TimedOut: the run has not ended in time; the message has its state.
        NoStack, google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: as
            `survive_restarts`.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    run = find_run_to_follow(clients, text, deadline=deadline)
    is_silent, said = False, _run_now(clients, run, run)
    on_change(said)

    def look() -> Run:
        nonlocal run, is_silent, said
        if not run.record.ended:
            try:
                run = read_again(clients, run, deadline=deadline)
            except TimedOut:
                is_silent = True
            before, said = said, _run_now(clients, run, said)
            if _news(said) != _news(before):
                on_change(said)
        return run

    poll(clients.context, look, lambda found: found.record.ended, timeout_s=timeout_s)
    if not run.record.ended:
        run_id, state = run.record.run_id, run.record.state
        late = (
            f"was {state} when the service last answered"
            if is_silent
            else f"is still {state} after {timeout_s:g} s"
        )
        raise TimedOut(f"{run_id} {late}. Keep waiting: trainmaster wait {run_id}")
    return run


def _news(run: Run) -> tuple[RunState, str]:
    return run.record.state, trials_text(run.record)


def wait_until_settled(clients: Clients, run: Run) -> Run:
    """An ended run, once the record says why it failed or whether its model was promoted, or as it was at the timeout.

    Costs nothing for a run that lacks neither.
    """
    if _is_settled(run):
        return run
    within_s = EVALUATED_WITHIN_S if run.record.awaits_evaluation else SETTLED_WITHIN_S
    deadline = time.monotonic() + within_s
    try:
        return poll(
            clients.context,
            lambda: read_again(clients, run, deadline=deadline),
            _is_settled,
            timeout_s=within_s,
        )
    except (TimedOut, NoStack):
        return run


def _is_settled(run: Run) -> bool:
    return not lacks_reason(run) and not lacks_verdict(run)


def lacks_reason(run: Run) -> bool:
    """Whether the service has yet to read from the job's log why the run failed."""
    return run.record.state is RunState.FAILED and not is_over(run.record, REASON)


def lacks_verdict(run: Run) -> bool:
    """Whether the service has yet to compare the run's model with the champion."""
    record = run.record
    competes = record.request is not None and "champion" in record.request.document
    is_known = is_over(record, CHAMPION) or (record.completion is not None and record.completion.champion)
    return record.state is RunState.SUCCEEDED and competes and not is_known


def poll(
    context: Context, look: Callable[[], T], is_done: Callable[[T], bool], *, timeout_s: float | None
) -> T:
    """The first result of `look` that is done, or the last one at the timeout; looks at least once.

    The pauses between two looks grow to 15 s, on the local stack to 1 s, and end at the timeout.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    longest = LONGEST_PAUSE_S if context.state is None else LONGEST_LOCAL_PAUSE_S
    pause = FIRST_PAUSE_S
    while not is_done(found := look()):
        left = pause if deadline is None else deadline - time.monotonic()
        if not left > 0:  # also NaN
            break
        time.sleep(min(pause, left))
        pause = min(pause * PAUSE_GROWTH, longest)
    return found


def _run_now(clients: Clients, run: Run, before: Run) -> Run:
    """A tuning as its job is, or where that cannot be read as it was before; any other run as it is on record."""
    if not is_active_tuning(run.record):
        return run
    from trainmaster.client.watch.now import tuning_now

    return tuning_now(clients, run, datetime.now(UTC)) or before
