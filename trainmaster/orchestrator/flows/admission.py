"""The queue is walked: whoever waits goes when there is room, by priority, then by arrival.

Called when a run has ended, for that makes room, when a new one has to wait for its turn, and by the tick, for room
comes by itself too. Nobody is submitted here but by `submit.py`, with a lease on the run; two walks at once meet
there, and the second one goes on behind that run, whose slot under a limit it leaves free.
"""

import traceback
from collections.abc import Iterator, Sequence
from contextlib import suppress

from trainmaster.orchestrator.core.admission.queue import Place, Walk
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.errors import (
    GenerationMoved,
    LeaseTooShort,
    RecordDamaged,
    RecordMoved,
    SubmissionUnknown,
    TrainmasterError,
)
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.ladder import ladder_for
from trainmaster.orchestrator.flows.launch import TakeOrder, launch
from trainmaster.orchestrator.flows.queueing import place_of, walk_of
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.settle import settle_hint
from trainmaster.orchestrator.flows.slots import full_limit, limits_for
from trainmaster.orchestrator.flows.submit import SUBMIT_NEEDS, take_up
from trainmaster.orchestrator.ports.runs import Held

BUSY = (LeaseTooShort, GenerationMoved)
"""There is no time left for the run, or its slots are fought over: nobody may overtake it."""
HELPED = 2
"""So many of those before it a new run takes along: then a queue does not grow by what it holds up."""


def settle_and_admit(services: Services, hint: JobHint) -> Iterator[Happened]:
    """Act on a log entry; where that made room, whoever waits goes. See `settle_hint`.

    What goes wrong along the queue is told and costs the entry nothing: the tick walks again.
    """
    happened = settle_hint(services, hint)
    yield happened
    if happened.made_room or happened.is_due:
        yield from admit(services, woken=happened.made_room)


def launch_and_admit(
    services: Services, arrival: Arrival, take_order: TakeOrder | None = None
) -> Iterator[Happened]:
    """See `launch`; where only its turn keeps the run, or where it ended and others may go, the queue goes on."""
    happened = launch(services, arrival, take_order)
    yield happened
    if happened.is_due:
        yield from admit(services, woken=False, most=HELPED)


def admit(
    services: Services,
    *,
    woken: bool,
    waiting: Sequence[Held] = (),
    reclaim: bool = False,
    most: int | None = None,
) -> Iterator[Happened]:
    """Walk the queue once, for a quarter of the function's time at most; one refusal closes a class.

    `woken`: a run has ended, so the first of each class is tried even if its pause is not over. `waiting` are runs
    that wait by their records: those that have no place are given one. `reclaim`: slots of the dead are looked for.
    `most`: after so many turns it ends.
    """
    try:
        walk = walk_of(services, woken=woken)
        yield from _placed(services, walk, waiting)
    except TrainmasterError as error:
        yield Happened(message=f"the queue was not walked: {error}", severity="WARNING")
        return
    turns = 0
    for place in walk.places:
        if most is not None and turns >= most:
            return
        if services.clock.now() - walk.began_at >= services.sweep_within / 2:
            yield Happened(message="no time for all who wait: the next walk goes on", severity="NOTICE")
            return
        if walk.passes_over(place):
            continue
        try:
            done = _turn(services, walk, place, reclaim=reclaim)
        except RecordMoved:  # another walk began with it
            walk.in_hands(place)
        except BUSY:
            walk.close(place.quota_class)
        except RecordDamaged as error:  # which must not keep the others for ever
            walk.went(place.run_id)
            yield Happened(message=f"not admitted: {error}", run_id=place.run_id, severity="ERROR")
        except TrainmasterError as error:
            walk.close(place.quota_class)
            yield Happened(message=f"not admitted: {error}", run_id=place.run_id, severity="WARNING")
        except Exception:  # a mistake in this program must not stop the walk for all the others
            walk.went(place.run_id)
            told = f"not admitted: {traceback.format_exc()}"
            yield Happened(message=told, run_id=place.run_id, severity="CRITICAL")
        else:
            if done is not None:
                turns += 1
                yield done


def _turn(services: Services, walk: Walk, place: Place, *, reclaim: bool) -> Happened | None:
    held = services.ledger.find(place.run_id)
    if held is None or held.record.state not in (RunState.RESERVED, RunState.WAITING):
        services.queue.remove(place)
        walk.went(place.run_id)
        return None
    record, now = held.record, services.clock.now()
    if record.live_lease(now) is not None:
        # Somebody asks for it at this moment, or has asked and died: it has had its turn.
        if now - record.updated_at < SUBMIT_NEEDS:
            walk.in_hands(place)
        else:
            _stands_out(services, walk, place)
        return None
    ladder = ladder_for(services, record)
    waiting = record.admission.waiting
    if waiting is not None and waiting.limit is not None:
        limits = limits_for(services, ladder[0].spec)
        limit = full_limit(services, record.run_id, limits, walk, reclaim=reclaim)
        if limit is not None:
            walk.fill(limit.name)
            if limit.name == waiting.limit:
                return None
            # It is another one by now, and whoever waits for the former need not wait for this run.
    try:
        return take_up(services, held, ladder, walk, reclaim=reclaim)
    except SubmissionUnknown as unknown:
        _stands_out(services, walk, place)
        return Happened(message=str(unknown), run_id=record.run_id, severity="WARNING")


def _stands_out(services: Services, walk: Walk, place: Place) -> None:
    """Whether the run has a job is not known before its lease ends, and nobody waits for that.

    It may well have gone. If not, the sweep gives it its place again once the lease is over.
    """
    services.queue.remove(place)
    walk.went(place.run_id)


def _placed(services: Services, walk: Walk, waiting: Sequence[Held]) -> Iterator[Happened]:
    """Give those a place that have none although their records say that they wait."""
    there = {place.run_id for place in walk.places}
    for run_id in [held.record.run_id for held in waiting if held.record.run_id not in there]:
        with suppress(RecordDamaged):
            held = services.ledger.find(run_id)
            if held is None or held.record.state is not RunState.WAITING:
                continue
            if held.record.live_lease(services.clock.now()) is None:
                place = place_of(services, held.record)
                services.queue.put(place)
                walk.joined(place)
                yield Happened(message="the run waits and had no place in the queue", run_id=run_id)
