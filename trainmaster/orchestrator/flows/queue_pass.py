"""A pass along the queue submits the runs for which there is room, by priority, then by arrival.

A pass follows the end of a run, which makes room, a new run that has to wait for its turn, and every tick, because room
also becomes free without an event. `submission/submit.py` submits each run under a lease. If two passes meet at a run, the second
one continues with the next run and leaves the first one's slot under a limit free.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from trainmaster.orchestrator.core import errors
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.admission.queue import Place, QueuePass
from trainmaster.orchestrator.core.admission.waiting import is_resting
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.runs.moves import live_lease
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.completion.complete import complete_from_log
from trainmaster.orchestrator.flows.lifecycle.slots import full_limit, limits_for, place_of, start_pass
from trainmaster.orchestrator.flows.services import SUBMIT_NEEDS, FlowResult, Services
from trainmaster.orchestrator.flows.submission.resume import take_over
from trainmaster.orchestrator.flows.turns import QUEUE_SHARE, Turns, error_text, run_item
from trainmaster.orchestrator.stores.admission import PLACES_MAX
from trainmaster.orchestrator.stores.ledger import Held

BUSY = (errors.LeaseTooShort, errors.GenerationMoved)
"""No time is left for the run, or it lost a slot race: its class is closed, so that later runs cannot overtake it."""


def complete_and_admit(services: Services, hint: JobHint) -> Iterator[FlowResult]:
    """Act on a log entry, and admit queued runs where that made room. See `complete_from_log`.

    An error along the queue is logged and leaves the entry acknowledged: the tick makes another pass.
    """
    result = complete_from_log(services, hint)
    yield result
    if result.made_room or result.is_due:
        yield from admit(services, room_freed=result.made_room)


def admit(
    services: Services,
    *,
    room_freed: bool,
    waiting: Sequence[Held] = (),
    reclaim: bool = False,
    most: int | None = None,
    turns: Turns | None = None,
) -> Iterator[FlowResult]:
    """Walk the queue once, for a fifth of the function's time at most; one refusal closes a class.

    `room_freed`: a run has ended, so the first run of each class is tried even before its pause is over. `waiting`:
    runs that wait by their records; those without a place get one. `reclaim`: slots that ended runs left are taken
    over. `most`: the most runs that are tried. `turns`: those of the tick that makes the pass.
    """
    try:
        queue_pass = start_pass(services, room_freed=room_freed)
        yield from _restore_places(services, queue_pass, waiting)
    except errors.TrainmasterError as error:
        yield FlowResult(message=f"the queue was not processed: {error}", severity="WARNING")
        return
    tried = 0
    for place in queue_pass.places:
        if most is not None and tried >= most:
            return
        if services.clock.now() - queue_pass.began_at >= services.timeout * QUEUE_SHARE:
            message = "out of time; the next pass continues with the rest of the queue"
            yield FlowResult(message=message, severity="NOTICE")
            return
        if _is_skipped(turns, queue_pass, place):
            continue
        try:
            done = _try_as_turn(turns, services, queue_pass, place, reclaim=reclaim)
        except errors.RecordMoved:  # another pass took it over
            queue_pass.mark_claimed(place)
        except BUSY:
            queue_pass.close(place.quota_class)
        except errors.RecordDamaged as error:  # it must not delay the others forever
            queue_pass.mark_gone(place.run_id)
            yield FlowResult(message=f"not admitted: {error}", run_id=place.run_id, severity="ERROR")
        except errors.TrainmasterError as error:
            queue_pass.close(place.quota_class)
            yield FlowResult(message=f"not admitted: {error}", run_id=place.run_id, severity="WARNING")
        except Exception as error:  # a bug in this program must not stop the pass for the other runs
            queue_pass.mark_gone(place.run_id)
            message = f"not admitted: {error_text(error)}"
            yield FlowResult(message=message, run_id=place.run_id, severity="CRITICAL")
        else:
            if done is not None:
                tried += 1
                yield done


def _is_skipped(turns: Turns | None, queue_pass: QueuePass, place: Place) -> bool:
    if turns is not None and not turns.may_take(run_item(place.run_id)):
        queue_pass.mark_gone(place.run_id)  # it must not delay the others
        return True
    return queue_pass.skips(place)


def _try_as_turn(
    turns: Turns | None, services: Services, queue_pass: QueuePass, place: Place, *, reclaim: bool
) -> FlowResult | None:
    if turns is None:  # an event, whose deliveries are counted
        return _try_run(services, queue_pass, place, reclaim=reclaim)
    return turns.take(run_item(place.run_id), lambda: _try_run(services, queue_pass, place, reclaim=reclaim))


def _try_run(services: Services, queue_pass: QueuePass, place: Place, *, reclaim: bool) -> FlowResult | None:
    held = services.ledger.find(place.run_id)
    is_waiting = held is not None and held.record.state in (RunState.RESERVED, RunState.WAITING)
    if held is None or not is_waiting or is_resting(held.record, services.clock.now()):
        services.queue.remove(place)
        queue_pass.mark_gone(place.run_id)
        return None
    record, now = held.record, services.clock.now()
    if live_lease(record, now) is not None:
        # Another attempt is submitting it now, or crashed while doing so: it has had its turn.
        if now - record.updated_at < SUBMIT_NEEDS:
            queue_pass.mark_claimed(place)
        else:
            _leave_until_lease_ends(services, queue_pass, place)
        return None
    candidates = candidates_of(record)
    waiting = record.admission.waiting
    if waiting is not None and waiting.limit is not None:
        limits = limits_for(services, candidates[0].spec, record.source.team)
        limit = full_limit(services, record.run_id, limits, queue_pass, reclaim=reclaim)
        if limit is not None:
            queue_pass.mark_full(limit.name)
            if limit.name == waiting.limit:
                return None
            # The run now waits for another limit, so runs that wait for the former need not wait for it.
    try:
        return take_over(services, held, queue_pass, reclaim=reclaim)
    except errors.SubmissionUnknown as unknown:
        _leave_until_lease_ends(services, queue_pass, place)
        return FlowResult(message=str(unknown), run_id=record.run_id, severity="WARNING")


def _leave_until_lease_ends(services: Services, queue_pass: QueuePass, place: Place) -> None:
    """Let no run wait behind one that may have a job: whether it has is not known before its lease ends.

    If it has none, the reconciler gives it its place back after the lease.
    """
    services.queue.remove(place)
    queue_pass.mark_gone(place.run_id)


def _restore_places(
    services: Services, queue_pass: QueuePass, waiting: Sequence[Held]
) -> Iterator[FlowResult]:
    """Give a place to each run that waits by its record but has none; report a queue that is known only in part."""
    if queue_pass.has_more:
        message = f"more than {PLACES_MAX:,} runs wait: this pass knows only the first ones; the others move up behind them"
        yield FlowResult(message=message, severity="WARNING")
    there = {place.run_id for place in queue_pass.places}
    for run_id in [held.record.run_id for held in waiting if held.record.run_id not in there]:
        with suppress(errors.RecordDamaged):
            held = services.ledger.find(run_id)
            if held is None or held.record.state is not RunState.WAITING:
                continue
            if live_lease(held.record, services.clock.now()) is None:
                place = place_of(services, held.record)
                if queue_pass.may_have(place):
                    continue
                services.queue.put(place)
                queue_pass.add(place)
                message = "the waiting run had no entry in the queue; added it again"
                yield FlowResult(message=message, run_id=run_id)
