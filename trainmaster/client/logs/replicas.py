"""The replicas and trials that a run can have, against which a selection of its log is checked."""

from trainmaster.client.errors import NotFound
from trainmaster.client.logs.line import SERVICE
from trainmaster.client.logs.read import CHIEF, Selection, service_name
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.requests.spec import Cluster
from trainmaster.orchestrator.core.runs.record import RunRecord

NUMBER_MAX_CHARS = 9
"""Beyond any replica that there can be; a number of any length would take long to read."""


def check_selection(selection: Selection, record: RunRecord) -> None:
    """Refuse a replica or trial that no job of the run can have.

    Raises:
        NotFound: the message has the run's replicas, or how many trials it has.
    """
    specs = [candidate.spec for candidate in candidates_of(record)] if record.request is not None else []
    if not specs:
        return
    pools = sorted({pool for spec in specs for pool in pool_sizes(spec.cluster)})
    sizes = {name: max(size for pool, size in pools if pool == name) for name, _ in pools}
    pool, _, number = service_name(selection.replica or CHIEF).rpartition("-")
    is_replica = (
        0 < len(number) < NUMBER_MAX_CHARS and number.isdecimal() and int(number) < sizes.get(pool, 0)
    )
    if not is_replica and selection.replica != SERVICE:
        named = ", ".join(_replicas(name, size) for name, size in sizes.items())
        raise NotFound(
            f"{record.run_id} has no replica {selection.replica!r}. It has {named}; "
            f"{SERVICE} is Vertex AI itself."
        )
    if selection.trial_id is not None:
        _check_trial(
            selection.trial_id, record, max(spec.tuning.max_trials if spec.tuning else 0 for spec in specs)
        )


def _check_trial(trial_id: str, record: RunRecord, most: int) -> None:
    """Refuse a trial that the record lacks; before it lists them, one with a number that the request does not allow."""
    recorded = [trial.id for trial in record.tuning.trials] if record.tuning is not None else []
    if not recorded and not most:
        raise NotFound(f"{record.run_id} is not a tuning, so it has no trials. Leave out --trial.")
    is_number = len(trial_id) < NUMBER_MAX_CHARS and trial_id.isascii() and trial_id.isdecimal()
    if trial_id in recorded or (not recorded and is_number and 0 < int(trial_id) <= most):
        return
    known = recorded or [str(number) for number in range(1, most + 1)]
    has = f"trials {known[0]} to {known[-1]}" if len(known) > 1 else f"only trial {known[0]}"
    raise NotFound(f"{record.run_id} has no trial {trial_id!r}. It has {has}.")


def pool_sizes(cluster: Cluster) -> list[tuple[str, int]]:
    """The name and size of each worker pool, as Vertex AI names its replicas."""
    return [
        (f"workerpool{place}", pool.replicas) for place, pool in enumerate(cluster.pools) if pool is not None
    ]


def _replicas(pool: str, size: int) -> str:
    return f"{pool}-0" if size == 1 else f"{pool}-0 to {pool}-{size - 1}"
