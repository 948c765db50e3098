"""The contents that the index must have once nothing is in flight: every run once, as its record says."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tests.contract.world import LEDGER, World
from trainmaster.orchestrator.core.admission.index_row import index_row_of
from trainmaster.orchestrator.core.runs.index import INDEX_PREFIX, IndexRow, parse_row
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.ports.objects import Objects


def index_rows(objects: Objects) -> list[IndexRow]:
    """Every row, the newest run first."""
    listed = objects.listing(LEDGER, INDEX_PREFIX)
    return [row for each in listed if (row := parse_row(each.name, each.metadata)) is not None]


def index_violations(world: World, records: Sequence[RunRecord]) -> Iterator[str]:
    """Every run without exactly one row, every row without a run, and every difference between the two.

    Steps after the end change the record, but nothing that its row shows.
    """
    rows = index_rows(world.objects)
    times = Counter(row.run_id for row in rows)
    found = {row.run_id: row for row in rows}
    yield from (f"{run_id} has {times[run_id]} rows in the index" for run_id in times if times[run_id] > 1)
    without_record = times.keys() - {record.run_id for record in records}
    yield from (f"{run_id} has a row in the index and no record" for run_id in without_record)
    for record in records:
        row = found.get(record.run_id)
        if record.is_order:
            if row is not None:
                yield f"{record.run_id} is a refused order, and has a row in the index"
            continue
        if row is None:
            yield f"{record.run_id} has no row in the index"
            continue
        expected = replace(index_row_of(record, 0), generation=row.generation, updated_at=row.updated_at)
        if row != expected:
            yield f"{record.run_id}: the index shows {row}, its record says {expected}"
