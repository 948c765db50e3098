"""Lists the runs that have not ended, by their markers: one storage operation for each thousand."""

from typing import TYPE_CHECKING

from trainmaster.client.runs.admission_objects import ledger_objects
from trainmaster.orchestrator.core.names import ACTIVE_PREFIX, is_run_id

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def active_runs(clients: "Clients") -> list[str]:
    """The ids of the runs that have not ended, waiting ones included, by name; at most OBJECTS_MAX. No record is read.

    The marker of a run that has just ended may still be there.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be listed.
    """
    names = (each.name.removeprefix(ACTIVE_PREFIX) for each in ledger_objects(clients, ACTIVE_PREFIX))
    return [name for name in names if is_run_id(name)]
