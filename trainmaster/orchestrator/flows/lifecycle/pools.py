"""Persistent resources: which of them can take a run now, and when an idle one is deleted.

Deleting one cancels its jobs. Of each that the policy deletes when idle, the ledger has a mark: `used` or `deleting`, and
when it was written. A submission writes `used` before it asks for a job, and the tick `deleting` before it deletes, each
only over the mark that it has read. So of the two that race, one loses: the run goes to fresh machines, or the resource
stays. A tick that is killed after its mark leaves a resource that takes no runs, which the next tick deletes. A job that
was submitted past the service, or by a run that names no other candidate, after the last look is cancelled by the service.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from trainmaster.orchestrator.core.admission.candidates import Candidate, current_candidate
from trainmaster.orchestrator.core.errors import GenerationMoved, RecordDamaged, TrainmasterError
from trainmaster.orchestrator.core.names import pool_object
from trainmaster.orchestrator.core.policy.pools import PoolState, RunPool
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.ports.objects import Listed
from trainmaster.orchestrator.stores.ledger import Marker

RACES_MAX = 3


def pool_obstacle(services: Services, candidate: Candidate, pool_id: str) -> str:
    """Why the candidate's persistent resource takes no run now; empty if it does, which is marked."""
    states: Mapping[str, PoolState] = {}
    with suppress(TrainmasterError):  # fresh machines are as good
        states = _running_pools(services, candidate.region)
    state = states.get(pool_id)
    free = state.machines - state.used if state else 0
    if state is None or free < candidate.replicas:
        return f"{free} free machines on {pool_id}"
    return "" if _mark_used(services, candidate.region, state) else f"{pool_id} is being deleted"


def delete_idle_pools(services: Services, active: Sequence[Marker]) -> Iterator[FlowResult]:
    """Delete the policy's persistent resources that no run has used for their `idle_s`: one list for each region.

    `active`: the runs that have not ended; their records are read only before a deletion.
    """
    pools = [pool for pool in services.policy().pools if pool.idle_s is not None]
    marks = services.pool_marks.of_all() if pools else {}
    states = {region: _running_pools(services, region) for region in {pool.region for pool in pools}}
    for pool in pools:
        state, mark = states[pool.region].get(pool.id), marks.get(pool_object(pool.region, pool.id))
        if state is not None and _is_idle(services, pool, state, mark, active):
            services.jobs.delete_pool(state.name)
            message = f"{state.name} is deleted: no run has used it for {pool.idle_s} s"
            yield FlowResult(message=message, severity="NOTICE")


def _running_pools(services: Services, region: str) -> Mapping[str, PoolState]:
    return {one.id: one for one in services.jobs.pool_states(region) if one.is_running}


def _is_idle(
    services: Services, pool: RunPool, state: PoolState, mark: Listed | None, active: Sequence[Marker]
) -> bool:
    """Whether it may be deleted, which is marked; a use that the tick sees is marked too, and the first sight of it."""
    now, marks, generation = services.clock.now(), services.pool_marks, mark.generation if mark else 0
    is_marked = mark is not None and mark.created_at >= state.created_at
    idle_since = mark.created_at if mark is not None and is_marked else now
    is_deleting = mark is not None and is_marked and marks.is_deleting(mark)
    is_due = is_deleting or now - idle_since >= timedelta(seconds=pool.idle_s or 0)
    try:
        if state.used or not is_marked or (is_due and _is_needed(services, pool, active)):
            marks.mark(pool.region, pool.id, is_deleting=False, instead_of=generation)
            return False
        if is_due and not is_deleting:
            marks.mark(pool.region, pool.id, is_deleting=True, instead_of=generation)
    except GenerationMoved:  # a run has just been submitted to it
        return False
    return is_due


def _is_needed(services: Services, pool: RunPool, active: Sequence[Marker]) -> bool:
    """Whether a run that has not ended is on it, or is submitted to it next."""
    for marker in active:
        with suppress(RecordDamaged):
            held = services.ledger.find(marker.run_id)
            if held is not None and held.record.request is not None and not held.record.ended:
                candidate = current_candidate(held.record)
                if (candidate.region, candidate.spec.persistent_resource) == (pool.region, pool.id):
                    return True
    return False


def _mark_used(services: Services, region: str, state: PoolState) -> bool:
    """False if it is being deleted, or its mark keeps changing. Resources that are never deleted need no mark."""
    marks = services.pool_marks
    deletable = [(pool.id, pool.region) for pool in services.policy().pools if pool.idle_s]
    if (state.id, region) not in deletable:
        return True
    for _ in range(RACES_MAX):
        mark = marks.of_all().get(pool_object(region, state.id))
        if mark is not None and marks.is_deleting(mark) and mark.created_at >= state.created_at:
            return False
        with suppress(GenerationMoved):
            marks.mark(region, state.id, is_deleting=False, instead_of=mark.generation if mark else 0)
            return True
    return False
