"""Persistent resources: which of them can take a run now."""

from collections.abc import Mapping
from contextlib import suppress

from trainmaster.orchestrator.core.admission.candidates import Candidate
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.policy.pools import PoolState
from trainmaster.orchestrator.flows.services import Services


def pool_obstacle(services: Services, candidate: Candidate) -> str:
    """Why the candidate's persistent resource takes no run now; empty if it does, or without one."""
    pool_id = candidate.spec.persistent_resource
    if pool_id is None:
        return ""
    states: Mapping[str, PoolState] = {}
    with suppress(TrainmasterError):  # fresh machines are as good
        states = _running_pools(services, candidate.region)
    state = states.get(pool_id)
    free = state.machines - state.used if state else 0
    return "" if state is not None and free >= candidate.replicas else f"{free} free machines on {pool_id}"


def _running_pools(services: Services, region: str) -> Mapping[str, PoolState]:
    return {one.id: one for one in services.jobs.pool_states(region) if one.is_running}
