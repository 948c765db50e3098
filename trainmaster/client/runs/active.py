"""Lists the runs that have not ended, by their markers: one storage operation for each thousand."""

from typing import TYPE_CHECKING

from trainmaster.client.find import Run, again_object, read_run, uploaded_object
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


def active_runs_of_file(clients: "Clients", run: Run) -> list[Run]:
    """The runs that the file of `run`, or `trainmaster again` of it, started and that have not ended, by their ids.

    Others may have uploaded a file of the same name, so there may be several. Costs the listing of `active_runs`, and
    one read for each active run of a file with this name.

    Raises:
        NotFound: one of their records is gone.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    names = {run.record.source.object_name, again_object(run.record), uploaded_object(run.record)}
    named = [each for each in active_runs(clients) if _base(each) == _base(run.record.run_id)]
    found = [read_run(clients, run_id) for run_id in named]
    return [each for each in found if not each.record.ended and each.record.source.object_name in names]


def _base(run_id: str) -> str:
    """What the ids of all runs of a file begin with."""
    return run_id.rsplit("-", 2)[0]
