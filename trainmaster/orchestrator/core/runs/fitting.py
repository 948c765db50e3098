"""A record of bounded size, whatever its job, its log and its request contained."""

from collections.abc import Iterator
from dataclasses import replace

from trainmaster.orchestrator.core.documents.codec import encoded, json_bytes
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.runs.end import TuningResult
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.sizes import MAX_RECORD_BYTES

PROBLEMS_MAX = 250
"""A rejected run's record has every fault that its report lists."""
TEXT_MAX_CHARS = 2000
KEPT = 20
"""Entries of each list that are kept if the record is too large."""
SHORT_MAX_CHARS = 500
LEFT_OUT = f"details were left out of this record: it would have more than {MAX_RECORD_BYTES} bytes"


def stored_form(record: RunRecord, document: object) -> tuple[RunRecord, bytes]:
    """The record and its content, of at most MAX_RECORD_BYTES: parts that nothing depends on are left out if need be.

    `document` is the encoded record, with what this release does not know.
    """
    if is_long(record):
        record = _shortened(record, PROBLEMS_MAX, TEXT_MAX_CHARS)
        document = encoded(record)
    content = json_bytes(document)
    if len(content) <= MAX_RECORD_BYTES:
        return record, content
    for smaller in _smaller(record):
        record, content = smaller, json_bytes(encoded(smaller))
        if len(content) <= MAX_RECORD_BYTES:
            break
    return record, content


def is_long(record: RunRecord) -> bool:
    """Whether the record has more or longer problems, or a longer failure, than records keep."""
    texts = (*record.problems, record.failure.message if record.failure else "")
    return len(record.problems) > PROBLEMS_MAX or max(map(len, texts)) > TEXT_MAX_CHARS


def _smaller(record: RunRecord) -> Iterator[RunRecord]:
    """Records of which each leaves out more; the last has a bounded size beside its request."""
    record = _shortened(record, KEPT, SHORT_MAX_CHARS)
    record = replace(record, problems=(*record.problems, LEFT_OUT))
    if record.rejection is not None:
        record = replace(record, rejection=replace(record.rejection, faults=None))
    yield record
    if record.tuning is not None:
        trials = (
            replace(
                trial,
                parameters={},
                infeasible_reason=cut(trial.infeasible_reason or "", SHORT_MAX_CHARS) or None,
                failure=None,
            )
            for trial in record.tuning.trials
        )
        yield replace(record, tuning=replace(record.tuning, trials=tuple(trials)))
        record = replace(record, tuning=TuningResult(trials=(), best_trial=record.tuning.best_trial))
    yield record
    yield _bare(record)


def _bare(record: RunRecord) -> RunRecord:
    """The record with what decisions depend on, and little more."""
    completion = record.completion
    return replace(
        record,
        source=replace(record.source, firing_values=None, traceparent=None),
        submission=replace(record.submission, tries=record.submission.tries[-KEPT:]),
        progress=None,
        tuning=None,
        completion=None if completion is None else replace(completion, cost=None),
    )


def _shortened(record: RunRecord, problems: int, chars: int) -> RunRecord:
    more = len(record.problems) - problems
    kept = tuple(cut(problem, chars) for problem in record.problems[:problems])
    return replace(
        record,
        problems=(*kept, f"and {more} more problems") if more > 0 else kept,
        failure=_short_failure(record.failure, chars),
    )


def _short_failure(failure: Failure | None, chars: int) -> Failure | None:
    return None if failure is None else replace(failure, message=cut(failure.message, chars))
