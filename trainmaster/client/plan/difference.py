"""The last run of a request's model, and which values of the request differ from that run's."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_run
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.runs.values import flat_values
from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.names import run_id_in_group
from trainmaster.orchestrator.core.requests.matrix import run_documents
from trainmaster.orchestrator.core.runs.record import RunRecord

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


@dataclass(frozen=True, kw_only=True)
class ChangedValue:
    """A value of the request by its path; None where the run or the request has none."""

    path: str
    before: str | None
    now: str | None


def last_run(clients: "Clients", examination: Examination) -> RunRecord | None:
    """The newest run of the request's model and team; of a matrix, the first of its runs.

    None for a faulty request, for a model without a run, and where the record no longer has its request. Costs the
    listing of `list_runs` and one read.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    request = examination.request
    if request is None:
        return None
    filters = Filters(model=request.spec.model_name, team=examination.terms.team)
    for row in list_runs(clients, filters, limit=1).rows:
        run_id = row.run_id if row.group is None else run_id_in_group(row.group, 1)
        with suppress(NotFound):  # a damaged record, or one of a newer version, is no run to compare with
            record = read_run(clients, run_id).record
            return record if record.request is not None else None
    return None


def changed_values(record: RunRecord, document: Mapping[str, object]) -> list[ChangedValue]:
    """The values that differ between the run's request and this one, in the order of this one; of a matrix, the first run."""
    before = dict(flat_values(record.request.document if record.request else {}, ""))
    now = dict(flat_values(run_documents(document)[0], ""))
    return [
        ChangedValue(path=path, before=before.get(path), now=now.get(path))
        for path in dict.fromkeys([*now, *before])
        if before.get(path) != now.get(path)
    ]
